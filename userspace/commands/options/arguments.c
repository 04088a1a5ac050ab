#include "userspace/commands/options/arguments.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "analysis/base/cleanup.h"

struct quiet {
	void *input;
	FILE *said;
};

static error_t start_child(int key, char *argument, struct argp_state *state)
{
	const struct quiet *quiet = state->input;

	(void)argument;
	if (key != ARGP_KEY_INIT)
		return ARGP_ERR_UNKNOWN;
	state->child_inputs[0] = quiet->input;
	state->err_stream = quiet->said;
	return 0;
}

/* getopt has said what it found itself; argp's own sentence comes before its hint. */
static void print_sentence(const char *said)
{
	static const char hint[] = "Try `";

	if (strncmp(said, hint, sizeof(hint) - 1))
		fprintf(stderr, "%.*s\n", (int)strcspn(said, "\n"), said);
}

error_t rls_arguments_parse(const struct argp *argp, int argc, char **argv, unsigned int flags,
			    void *input)
{
	const struct argp_child children[] = {{.argp = argp}, {0}};
	const struct argp root = {.parser = start_child, .children = children};
	_cleanup_free_ char *said = NULL;
	struct quiet quiet = {.input = input};
	size_t size = 0;
	error_t r;

	quiet.said = open_memstream(&said, &size);
	if (!quiet.said)
		return errno;
	r = argp_parse(&root, argc, argv, flags | ARGP_NO_EXIT | ARGP_NO_HELP, NULL, &quiet);
	if (fclose(quiet.said))
		return errno;
	if (size)
		print_sentence(said);
	return r;
}
