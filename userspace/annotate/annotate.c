#include "userspace/annotate/rlscope_annotate.h"

#include <string.h>

#include "userspace/annotate/names.h"
#include "userspace/annotate/record.h"
#include "userspace/annotate/usdt.h"

RLS_USDT_SEMAPHORE(rls_push_semaphore);
RLS_USDT_SEMAPHORE(rls_pop_semaphore);
RLS_USDT_SEMAPHORE(rls_phase_semaphore);

/* Out of line and cold: without a tool attached only the semaphore is looked at. */
__attribute__((noinline, cold)) static void announce_push(const char *name, unsigned int depth)
{
	RLS_USDT("operation__push", rls_push_semaphore, name, depth);
}

__attribute__((noinline, cold)) static void announce_pop(const char *name, unsigned int depth)
{
	RLS_USDT("operation__pop", rls_pop_semaphore, name, depth);
}

__attribute__((noinline, cold)) static void announce_phase(const char *name, unsigned int depth)
{
	RLS_USDT("phase", rls_phase_semaphore, name, depth);
}

static bool is_raised(const unsigned short *semaphore)
{
	return __builtin_expect(*(const volatile unsigned short *)semaphore != 0, 0);
}

static const char *text_of(const struct rls_name *name)
{
	return name ? name->text : "";
}

rlscope_name rlscope_name_intern(const char *text, size_t length)
{
	return rls_name_intern(text, length);
}

const char *rlscope_name_text(rlscope_name name)
{
	return name->text;
}

void rlscope_operation_begin_name(rlscope_name name)
{
	struct rls_thread_record *record = rls_record_get();

	if (!record)
		return;
	rls_record_push(record, name, NULL);
	if (is_raised(&rls_push_semaphore))
		announce_push(name->text, record->depth);
}

void rlscope_operation_begin(const char *name)
{
	rlscope_operation_begin_name(rls_name_intern(name ? name : "", name ? strlen(name) : 0));
}

void rlscope_operation_end(void)
{
	struct rls_thread_record *record = rls_record_peek();

	if (!record || rls_record_pop(record) < 0)
		return;
	if (is_raised(&rls_pop_semaphore))
		announce_pop(text_of(rls_record_innermost(record)), record->depth);
}

void rlscope_operation_begin_owned(rlscope_name name, const void *owner)
{
	struct rls_thread_record *record = rls_record_get();

	if (!record)
		return;
	rls_record_push(record, name, owner);
	if (is_raised(&rls_push_semaphore))
		announce_push(name->text, record->depth);
}

int rlscope_operation_end_owned(rlscope_name name, const void *owner)
{
	struct rls_thread_record *record = rls_record_peek();

	if (!record || rls_record_end(record, name, owner) < 0)
		return -1;
	if (is_raised(&rls_pop_semaphore))
		announce_pop(text_of(rls_record_innermost(record)), record->depth);
	return 0;
}

void rlscope_operation_not_open(void)
{
	struct rls_thread_record *record = rls_record_get();

	if (record)
		rls_record_disorder(record);
}

unsigned int rlscope_operation_suspend(const void *owner, rlscope_name *names)
{
	struct rls_thread_record *record = rls_record_peek();

	return record ? rls_record_suspend(record, owner, names) : 0;
}

void rlscope_operation_resume(const void *owner, const rlscope_name *names, unsigned int count)
{
	struct rls_thread_record *record = rls_record_get();

	if (record)
		rls_record_resume(record, owner, names, count);
}

/* Process-wide word in the descriptor first, for who looks now; then the edge, for when. */
static void publish(rls_u64 *word, enum rls_edge_kind kind, const char *text)
{
	const struct rls_name *name = text && *text ? rls_name_intern(text, strlen(text)) : NULL;
	struct rls_thread_record *record = rls_record_get();

	__atomic_store_n(word, (uintptr_t)name, __ATOMIC_RELEASE);
	if (record)
		rls_record_mark(record, kind, name);
}

void rlscope_set_phase(const char *phase)
{
	publish(&rlscope_annotate_descriptor.phase, RLS_EDGE_PHASE, phase);
	if (is_raised(&rls_phase_semaphore))
		announce_phase(rlscope_get_phase(), 0);
}

const char *rlscope_get_phase(void)
{
	rls_u64 phase = __atomic_load_n(&rlscope_annotate_descriptor.phase, __ATOMIC_ACQUIRE);

	return text_of((const struct rls_name *)(uintptr_t)phase);
}

void rlscope_set_process_name(const char *name)
{
	publish(&rlscope_annotate_descriptor.process_name, RLS_EDGE_PROCESS_NAME, name);
}

const char *rlscope_annotate_version(void)
{
	return RLS_VERSION;
}

const struct rls_thread_record *rlscope_annotate_thread_record(void)
{
	return rls_record_peek();
}
