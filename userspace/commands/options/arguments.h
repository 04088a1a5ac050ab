/* Arguments: argp's parsing, as all commands have it. */
#ifndef RLS_COMMANDS_ARGUMENTS_H
#define RLS_COMMANDS_ARGUMENTS_H

#include <argp.h>

/* As argp_parse, with the command in argv[0], without an exit and without options of argp's own. An
 * error in an option is one sentence on stderr, without argp's hint after it.
 * flags: ARGP_IN_ORDER or 0. 0, or an errno of argp's or the parser's. */
error_t rls_arguments_parse(const struct argp *argp, int argc, char **argv, unsigned int flags,
			    void *input);

#endif
