/* rlscope_annotate.h: name what a program is doing, for rlscope-bpf to read.
 *
 *     rlscope_set_phase("data_collection");
 *     rlscope_operation_begin("inference");
 *     ...
 *     rlscope_operation_end();
 *
 * Link with -lrlscope_annotate. Without a profiler an edge costs tens of nanoseconds, no
 * system call and no privilege; nothing here ever fails, blocks or changes errno.
 *
 * Operations nest, per thread; the same name may nest in itself. Names are UTF-8, read
 * during the call only, cut to 127 bytes. Threads are independent. After fork the child
 * goes on with the forking thread's open operations.
 */
#ifndef RLSCOPE_ANNOTATE_H
#define RLSCOPE_ANNOTATE_H

#include <stddef.h>

#ifdef __cplusplus
extern "C" {
#endif

#define RLSCOPE_ANNOTATE_API __attribute__((visibility("default")))

/* A name as the library keeps it: one per distinct text, valid for the process's life.
 * Interning once and beginning by handle saves the hashing. */
typedef const struct rls_name *rlscope_name;

/* length bytes of text; never NULL. Past 65,536 distinct names: the handle of "(other)". */
RLSCOPE_ANNOTATE_API rlscope_name rlscope_name_intern(const char *text, size_t length);
/* The text, NUL-terminated, valid for the process's life. */
RLSCOPE_ANNOTATE_API const char *rlscope_name_text(rlscope_name name);

/* Begins an operation on the calling thread, inside the one that is innermost now. */
RLSCOPE_ANNOTATE_API void rlscope_operation_begin(const char *name);
RLSCOPE_ANNOTATE_API void rlscope_operation_begin_name(rlscope_name name);
/* Ends the innermost operation of the calling thread; without one, does nothing. */
RLSCOPE_ANNOTATE_API void rlscope_operation_end(void);

/* For languages with coroutines. An operation that has an owner (an address, only ever compared) is
 * ended by name, whatever is innermost: 0, or -1 if none of that name is open on the thread. Where
 * its owner stops running, its operations are left: names, at most RLSCOPE_SUSPENDED_MAX, outermost
 * first; and entered again where it goes on, on whatever thread. */
#define RLSCOPE_SUSPENDED_MAX 64
RLSCOPE_ANNOTATE_API void rlscope_operation_begin_owned(rlscope_name name, const void *owner);
RLSCOPE_ANNOTATE_API int rlscope_operation_end_owned(rlscope_name name, const void *owner);
RLSCOPE_ANNOTATE_API unsigned int rlscope_operation_suspend(const void *owner, rlscope_name *names);
RLSCOPE_ANNOTATE_API void rlscope_operation_resume(const void *owner, const rlscope_name *names,
						   unsigned int count);
/* An operation was to be ended that is not open: recordings count that and warn. */
RLSCOPE_ANNOTATE_API void rlscope_operation_not_open(void);

/* The phase of the whole process from here on; NULL or "" for none. A phase may change
 * inside an operation. */
RLSCOPE_ANNOTATE_API void rlscope_set_phase(const char *phase);
/* The phase now, "" for none. Valid for the process's life. */
RLSCOPE_ANNOTATE_API const char *rlscope_get_phase(void);

/* What to call this process in reports. */
RLSCOPE_ANNOTATE_API void rlscope_set_process_name(const char *name);

/* "MAJOR.MINOR.PATCH" of the library that is loaded. */
RLSCOPE_ANNOTATE_API const char *rlscope_annotate_version(void);

/* The calling thread's record (annotate_wire.h), NULL if it never annotated. For tests and
 * for tools that live in the process; valid until the thread ends. */
struct rls_thread_record;
RLSCOPE_ANNOTATE_API const struct rls_thread_record *rlscope_annotate_thread_record(void);

#ifdef __cplusplus
}

namespace rlscope
{
/* An operation that lasts as long as the object: ended by return and by exception alike. */
class operation
{
      public:
	explicit operation(const char *name)
	{
		rlscope_operation_begin(name);
	}
	~operation()
	{
		rlscope_operation_end();
	}
	operation(const operation &) = delete;
	operation &operator=(const operation &) = delete;
};
} // namespace rlscope
#endif

#endif
