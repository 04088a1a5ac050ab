/* --help, as all commands have it. */
#ifndef RLS_COMMANDS_HELP_H
#define RLS_COMMANDS_HELP_H

#include <argp.h>
#include <stdbool.h>

/* Prints what argp knows of the command to stdout and sets *printed: nothing else is to be done, even if
 * arguments are missing. Returns 0, for argp. */
error_t rls_help_print(struct argp_state *state, bool *printed);

#endif
