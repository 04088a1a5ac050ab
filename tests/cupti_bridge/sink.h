/* The bridge with a site of the tests' own: the semaphore is a number that a test sets, and
 * batches come to a function of the test's, or into a file.
 *
 *     RLS_SINK_WATCHERS=n   the semaphore's value at the start (0)
 *     RLS_SINK_FILE=path    batches are appended there, as they are
 */
#ifndef RLS_TESTS_SINK_H
#define RLS_TESTS_SINK_H

#include <stdint.h>

typedef void (*sink_receiver)(const void *batch, uint32_t bytes);

/* Of the library; any thread. */
void sink_watch(unsigned int watchers);
void sink_receive(sink_receiver receiver);

#endif
