/* What every fuzz target offers: LLVMFuzzerTestOneInput, which libFuzzer calls, and so does
 * replay.c, which runs the corpus and random changes of it as an ordinary test.
 */
#ifndef RLS_TESTS_FUZZ_H
#define RLS_TESTS_FUZZ_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "analysis/event/event_source.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/* Reads a source to its end and frees it. Aborts when events are out of order, when one is
 * what no trace may hold, or when something is damaged and nothing says so. */
void fuzz_drain(struct rls_event_source *source);

/* Aborts, and says what was promised, when it does not hold. */
void fuzz_require(bool holds, const char *what);

/* A memory file with these bytes, at its beginning. */
int fuzz_file(const uint8_t *data, size_t size);

/* Where what opens by path finds it. */
#define FUZZ_PATH_BYTES 32
void fuzz_file_path(int fd, char *path);

#endif
