/* What is injected: says so each time that it is started, on the standard output that there is. */
#include <unistd.h>

__attribute__((visibility("default"))) int started(void);

int started(void)
{
	return write(1, "started\n", 8) == 8;
}
