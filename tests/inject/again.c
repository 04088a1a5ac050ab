/* again PID LIBRARY FUNCTION TIMES: injects, prints how often it did, and each first reason why not. */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "userspace/inject/inject.h"

int main(int argc, char **argv)
{
	struct rls_injection injection;
	unsigned long times, done = 0;
	char why[RLS_INJECT_WHY_BYTES], said[RLS_INJECT_WHY_BYTES] = "";

	if (argc != 5)
		return 2;
	injection = (struct rls_injection){
		.pid = atoi(argv[1]), .library = argv[2], .start = argv[3], .limit_ns = 5000000000};
	times = strtoul(argv[4], NULL, 10);
	for (unsigned long i = 0; i < times; i++) {
		if (!rls_inject(&injection, why)) {
			done++;
		} else if (strcmp(why, said)) {
			fprintf(stderr, "the process %s\n", why);
			memcpy(said, why, sizeof(said));
		}
	}
	printf("%lu\n", done);
	return done == times ? 0 : 1;
}
