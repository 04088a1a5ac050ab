#include "userspace/commands/options/help.h"

#include <stdio.h>

error_t rls_help_print(struct argp_state *state, bool *printed)
{
	argp_state_help(state, stdout, ARGP_HELP_USAGE | ARGP_HELP_LONG | ARGP_HELP_DOC);
	*printed = true;
	return 0;
}
