/* --help, as all commands have it. */
#ifndef RLS_COMMANDS_HELP_H
#define RLS_COMMANDS_HELP_H

#include <argp.h>
#include <stdbool.h>

/* What argp knows of the command goes to stdout, and *printed says so: there is nothing else to do,
 * whatever may be missing among the arguments. Returns 0, for argp. */
error_t rls_help_print(struct argp_state *state, bool *printed);

#endif
