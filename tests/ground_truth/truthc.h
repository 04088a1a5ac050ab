/* libtruthc: a plain C library as ctypes users have them; every function is exported. */
#ifndef TRUTHC_H
#define TRUTHC_H

#include <stdint.h>

int truthc_noop(int number);
double truthc_add(double a, double b);
uint64_t truthc_spin(uint64_t wanted_ns);

/* Calls the exported truthc_inner() through the PLT `count` times. */
long truthc_outer(long count);
long truthc_inner(long number);

/* Calls back `count` times; the sum of the answers. */
long truthc_callback(long (*function)(long), long count);

/* Nests `depth` calls of itself through the PLT, then calls back once. */
long truthc_nest(long (*function)(long), long depth);

/* Calls truthc_jump_out() from under `depth` exported frames, which longjmps out of all of
 * them, `count` times. Returns count. */
long truthc_protect(long depth, long count);
void truthc_jump_deep(long depth);
void truthc_jump_out(long value);

/* The same by siglongjmp from a SIGUSR1 handler that runs on top of an exported function. */
long truthc_signal_jumps(long count);
void truthc_raise(long depth);

/* Ends the process from within. */
void truthc_exit(int status);

/* One thread per round that ends inside exported functions: by pthread_exit, by being
 * cancelled while it sleeps there. The number of threads that ended so. */
long truthc_thread_exits(long count);
long truthc_thread_cancels(long count);
void truthc_leave_thread(long depth);
void truthc_sleep_in_thread(long depth);

#endif
