#include "userspace/annotate/record.h"

#include <errno.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "userspace/annotate/rlscope_annotate.h"
#include "userspace/annotate/usdt.h"

/* In .data and not in .bss: the kernel finds listeners by its offset in the file. Protected:
 * a program that links to it must not move it into a copy of its own. */
struct rls_annotate_descriptor rlscope_annotate_descriptor = {
	.magic = RLS_ANNOTATE_MAGIC,
	.version = RLS_ANNOTATE_VERSION,
	.size = sizeof(struct rls_annotate_descriptor),
};
/* The same object under a name the linker resolves for good, for the note's semaphore. */
extern struct rls_annotate_descriptor descriptor
	__attribute__((alias("rlscope_annotate_descriptor"), visibility("hidden")));

_Static_assert(offsetof(struct rls_annotate_descriptor, listeners) == 48, "the note says 48");

/* Initial-exec, so that BPF finds it at one offset in every thread; glibc keeps room for
 * this much static TLS in libraries that are loaded late. */
static __thread struct rls_thread_record *current __attribute__((tls_model("initial-exec")));

static pthread_key_t exit_key;
static bool has_exit_key;

extern const char flush_site[] __asm__("rls_flush_site") __attribute__((visibility("hidden")));

/* Where a listener's probe sits. Out of line, so that the site exists once. */
__attribute__((noinline, noclone)) static void flush(struct rls_thread_record *record)
{
	__asm__ volatile(".hidden rls_flush_site\n"
			 "rls_flush_site:\n" RLS_USDT_NOTE("flush", "descriptor + 48", "8@%%rdi")
			 :
			 : "D"(record)
			 : "memory");
}

static bool is_listened_to(void)
{
	/* Raised by the kernel behind the compiler's back, hence volatile. */
	return *(volatile rls_u32 *)&descriptor.listeners != 0;
}

static uint64_t now_ns(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return now.tv_sec * 1000000000ull + now.tv_nsec;
}

static rls_u32 own_tid(void)
{
	return syscall(SYS_gettid);
}

/* What readers need not know lies behind the record, on the same pages. */
struct whole_record {
	struct rls_thread_record record;
	const void *owners
		[RLS_STACK_MAX]; /* of the operations of its stack: NULL, or who may suspend them */
};

static const void **owners_of(struct rls_thread_record *record)
{
	return ((struct whole_record *)record)->owners;
}

static struct rls_thread_record *create(void)
{
	int saved_errno = errno;
	/* Own pages, populated: BPF must never fault on them, and a reader that comes too
	 * late gets an error instead of somebody else's heap. */
	struct rls_thread_record *record =
		mmap(NULL, sizeof(struct whole_record), PROT_READ | PROT_WRITE,
		     MAP_PRIVATE | MAP_ANONYMOUS | MAP_POPULATE, -1, 0);

	errno = saved_errno;
	if (record == MAP_FAILED)
		return NULL;
	record->tid = own_tid();
	if (has_exit_key)
		pthread_setspecific(exit_key, record);
	current = record;
	return record;
}

struct rls_thread_record *rls_record_peek(void)
{
	return current;
}

struct rls_thread_record *rls_record_get(void)
{
	return current ? current : create();
}

static void record_append(struct rls_thread_record *record, enum rls_edge_kind kind,
			  const struct rls_name *name, rls_u32 flags)
{
	rls_u64 head = record->head;
	struct rls_edge *edge = &record->edges[head % RLS_EDGE_RING];

	edge->time_ns = now_ns();
	edge->name = (uintptr_t)name;
	edge->kind = kind;
	edge->flags = flags;
	edge->depth = record->depth < UINT16_MAX ? record->depth : UINT16_MAX;
	__atomic_store_n(&record->head, head + 1, __ATOMIC_RELEASE);
	if ((head + 1) % RLS_EDGE_FLUSH == 0 && is_listened_to())
		flush(record);
}

const struct rls_name *rls_record_innermost(const struct rls_thread_record *record)
{
	rls_u32 kept = record->depth < RLS_STACK_MAX ? record->depth : RLS_STACK_MAX;

	return kept ? (const struct rls_name *)(uintptr_t)record->stack[kept - 1] : NULL;
}

static void push_flagged(struct rls_thread_record *record, const struct rls_name *name,
			 const void *owner, rls_u32 flags)
{
	if (record->depth < RLS_STACK_MAX) {
		record->stack[record->depth] = (uintptr_t)name;
		owners_of(record)[record->depth] = owner;
	}
	record->depth++;
	record_append(record, RLS_EDGE_PUSH, name, flags);
}

static void pop_flagged(struct rls_thread_record *record, rls_u32 flags)
{
	record->depth--;
	record_append(record, RLS_EDGE_POP, rls_record_innermost(record), flags);
}

void rls_record_push(struct rls_thread_record *record, const struct rls_name *name,
		     const void *owner)
{
	push_flagged(record, name, owner, 0);
}

int rls_record_pop(struct rls_thread_record *record)
{
	if (!record->depth)
		return -ENOENT;
	pop_flagged(record, 0);
	return 0;
}

/* The innermost operation of that name: the owner's if it has one, else anyone's. -1: none. */
static int find_open(struct rls_thread_record *record, const struct rls_name *name,
		     const void *owner)
{
	int found = -1;

	for (int i = (int)record->depth; i-- > 0;) {
		if (record->stack[i] != (uintptr_t)name)
			continue;
		if (owners_of(record)[i] == owner)
			return i;
		if (found < 0)
			found = i;
	}
	return found;
}

/* Ends the operation at `from` and those of the same owner above it, or only that one if !all;
 * the others above it go on. */
static void remove_from(struct rls_thread_record *record, rls_u32 from, bool all, rls_u32 flags)
{
	const void **owners = owners_of(record), *owner = owners[from];
	const void *owners_above[RLS_STACK_MAX];
	rls_u64 above[RLS_STACK_MAX];
	rls_u32 count = 0;

	for (rls_u32 i = from + 1; i < record->depth; i++) {
		if (all && owners[i] == owner)
			continue;
		above[count] = record->stack[i];
		owners_above[count++] = owners[i];
	}
	while (record->depth > from) {
		pop_flagged(record, flags);
		flags = 0;
	}
	for (rls_u32 i = 0; i < count; i++)
		push_flagged(record, (const struct rls_name *)(uintptr_t)above[i], owners_above[i],
			     RLS_EDGE_RESUMED);
}

int rls_record_end(struct rls_thread_record *record, const struct rls_name *name, const void *owner)
{
	int at;

	/* Beyond what is distinguished it is taken to be the innermost. */
	if (record->depth > RLS_STACK_MAX)
		return rls_record_pop(record);
	at = find_open(record, name, owner);
	if (at < 0)
		return -ENOENT;
	remove_from(record, (rls_u32)at, false,
		    (rls_u32)at + 1 < record->depth ? RLS_EDGE_DISORDER : 0);
	return 0;
}

void rls_record_disorder(struct rls_thread_record *record)
{
	record_append(record, RLS_EDGE_POP, rls_record_innermost(record), RLS_EDGE_DISORDER);
}

unsigned int rls_record_suspend(struct rls_thread_record *record, const void *owner,
				const struct rls_name *names[RLS_STACK_MAX])
{
	rls_u32 depth = record->depth < RLS_STACK_MAX ? record->depth : RLS_STACK_MAX;
	unsigned int count = 0;
	rls_u32 from = 0;

	for (rls_u32 i = 0; i < depth; i++) {
		if (owners_of(record)[i] != owner)
			continue;
		if (!count)
			from = i;
		names[count++] = (const struct rls_name *)(uintptr_t)record->stack[i];
	}
	/* Of those beyond what is distinguished it is not known whose they are. */
	if (!count || record->depth > RLS_STACK_MAX)
		return 0;
	remove_from(record, from, true, 0);
	return count;
}

void rls_record_resume(struct rls_thread_record *record, const void *owner,
		       const struct rls_name *const *names, unsigned int count)
{
	for (unsigned int i = 0; i < count; i++)
		push_flagged(record, names[i], owner, RLS_EDGE_RESUMED);
}

void rls_record_mark(struct rls_thread_record *record, enum rls_edge_kind kind,
		     const struct rls_name *name)
{
	record_append(record, kind, name, 0);
}

/* The thread ends. The pointer goes first: whoever follows it from here on finds NULL, and
 * who followed it before fails to read the pages. A later destructor that annotates makes
 * a new record and brings us here again. */
static void end_thread(void *pointer)
{
	struct rls_thread_record *record = pointer;

	if (is_listened_to())
		flush(record);
	__atomic_store_n(&current, NULL, __ATOMIC_RELEASE);
	munmap(record, sizeof(struct whole_record));
}

/* In a forked child only the forking thread lives on, under another id. What the other
 * threads left is unreachable and small. */
static void end_fork(void)
{
	if (current)
		current->tid = own_tid();
}

__attribute__((constructor)) static void load(void)
{
	rls_u64 thread_pointer;

	__asm__("mov %%fs:0, %0" : "=r"(thread_pointer));
	descriptor.thread_pointer_offset = (uintptr_t)&current - thread_pointer;
	descriptor.flush_site = (uintptr_t)flush_site;
	has_exit_key = pthread_key_create(&exit_key, end_thread) == 0;
	pthread_atfork(NULL, NULL, end_fork);
}

/* Key destructors do not run for the thread that ends the process. */
__attribute__((destructor)) static void unload(void)
{
	if (current && is_listened_to())
		flush(current);
}
