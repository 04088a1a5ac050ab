/* A stripped library's file, asked for the names that were packed into it or put elsewhere. */
#include "fuzz.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "userspace/names/native_file.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct rls_native_file *file;
	char path[FUZZ_PATH_BYTES];
	int fd = fuzz_file(data, size);
	uint64_t start;

	fuzz_file_path(fd, path);
	if (!rls_native_file_open(path, 0, "/nowhere/library.so", &file)) {
		for (uint64_t vaddr = 0; vaddr < 0x2000; vaddr += 64) {
			const char *name = rls_native_file_function(file, vaddr, &start);

			fuzz_require(!*name || start <= vaddr,
				     "a function begins before what it holds");
			rls_native_file_evaluates(file, vaddr);
		}
		rls_native_file_close(file);
	}
	close(fd);
	return 0;
}
