/* Threads that come and go, fork, and the flush site. */
#include <pthread.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <ucontext.h>
#include <unistd.h>

#include <cmocka.h>

#include "observer.h"
#include "rlscope_annotate.h"

#define THREADS 8

/* Shared between the child that runs the threads and the observer. */
struct board {
	uint64_t thread_pointers[THREADS];
	uint32_t tids[THREADS];
};
static struct board *board;
static pthread_barrier_t all_there;

static const char *const names[THREADS] = {"t0", "t1", "t2", "t3", "t4", "t5", "t6", "t7"};

static void *annotate_and_wait(void *number)
{
	size_t i = (uintptr_t)number;

	board->thread_pointers[i] = own_thread_pointer();
	board->tids[i] = syscall(SYS_gettid);
	for (size_t times = 0; times <= i; times++)
		rlscope_operation_begin(names[i]);
	pthread_barrier_wait(&all_there);
	pause();
	return NULL;
}

static void run_threads(void)
{
	pthread_t thread;

	pthread_barrier_init(&all_there, NULL, THREADS + 1);
	for (uintptr_t i = 0; i < THREADS; i++)
		pthread_create(&thread, NULL, annotate_and_wait, (void *)i);
	pthread_barrier_wait(&all_there);
}

static void test_threads_have_records_of_their_own(void **state)
{
	struct target target = target_start(run_threads);

	for (int i = 0; i < THREADS; i++) {
		struct rls_thread_record record;
		uint64_t address = record_address(target.pid, board->thread_pointers[i]);

		assert_true(address != 0);
		assert_int_equal(read_memory(target.pid, address, &record, sizeof(record)), 0);
		assert_int_equal(record.tid, board->tids[i]);
		assert_int_equal(record.head, i + 1);
		assert_int_equal(record.depth, i + 1);
		assert_string_equal(read_name(target.pid, record.stack[i]), names[i]);
	}
	assert_true(record_address(target.pid, target.thread_pointer) == 0);
	assert_int_equal(target_end(&target), 0);
}

static void *annotate_once(void *out)
{
	rlscope_operation_begin("short life");
	*(const void **)out = rlscope_annotate_thread_record();
	return NULL;
}

static void test_a_record_goes_with_its_thread(void **state)
{
	const void *record = NULL;
	struct rls_thread_record copy;
	pthread_t thread;

	pthread_create(&thread, NULL, annotate_once, &record);
	pthread_join(thread, NULL);
	assert_non_null(record);
	assert_int_equal(read_memory(getpid(), (uintptr_t)record, &copy, sizeof(copy)), -1);
}

static pthread_key_t late_key;

static void annotate_late(void *value)
{
	rlscope_operation_begin("in a destructor");
	rlscope_operation_end();
}

static void *end_with_late_key(void *unused)
{
	pthread_setspecific(late_key, &late_key);
	rlscope_operation_begin("before");
	return NULL;
}

static void test_annotating_while_the_thread_ends_is_harmless(void **state)
{
	pthread_t thread;

	assert_int_equal(pthread_key_create(&late_key, annotate_late), 0);
	pthread_create(&thread, NULL, end_with_late_key, NULL);
	assert_int_equal(pthread_join(thread, NULL), 0);
	pthread_key_delete(late_key);
}

static void fork_inside(void)
{
	pid_t child;
	int status;

	rlscope_operation_begin("parent");
	child = fork();
	if (!child) {
		const struct rls_thread_record *record = rlscope_annotate_thread_record();
		bool good = record->tid == (uint32_t)getpid() && record->depth == 1;

		rlscope_operation_begin("child");
		rlscope_operation_end();
		rlscope_operation_end();
		_exit(!(good && record->depth == 0 && record->head == 4));
	}
	if (waitpid(child, &status, 0) != child || status)
		_exit(1);
}

static void test_a_forked_child_goes_on_with_a_copy(void **state)
{
	struct target target = target_start(fork_inside);
	struct rls_thread_record record = read_record(&target);

	assert_int_equal(record.tid, target.pid);
	assert_int_equal(record.head, 1);
	assert_int_equal(record.depth, 1);
	assert_int_equal(target_end(&target), 0);
}

static _Atomic bool stop;

static void *annotate_busily(void *unused)
{
	char name[8] = "aaaaaa";

	for (unsigned int i = 0; !stop; i++) {
		for (int digit = 0; digit < 3; digit++)
			name[digit] = 'a' + (i >> 4 * digit & 15);
		rlscope_operation_begin(name);
		rlscope_operation_end();
	}
	return NULL;
}

static void test_forking_while_others_annotate_never_hangs(void **state)
{
	pthread_t threads[2];

	stop = false;
	for (int i = 0; i < 2; i++)
		pthread_create(&threads[i], NULL, annotate_busily, NULL);
	for (int i = 0; i < 50; i++) {
		pid_t child = fork();
		int status;

		if (!child) {
			alarm(60); /* what hangs ends */
			rlscope_operation_begin("a new name of the child's");
			rlscope_operation_end();
			_exit(0);
		}
		assert_int_equal(waitpid(child, &status, 0), child);
		assert_int_equal(status, 0);
	}
	stop = true;
	for (int i = 0; i < 2; i++)
		pthread_join(threads[i], NULL);
}

/* In place of the kernel's probe: a breakpoint on the flush site. */
static volatile int flushes;
static volatile uint64_t flushed_record;

static void on_breakpoint(int number, siginfo_t *info, void *context)
{
	greg_t *registers = ((ucontext_t *)context)->uc_mcontext.gregs;

	flushes++;
	flushed_record = registers[REG_RDI];
	registers[REG_RIP] += 4; /* behind the rest of the nop */
}

static void set_breakpoint(void)
{
	static const unsigned char nop5[] = {0x0f, 0x1f, 0x44, 0x00, 0x00};
	unsigned char *site = (unsigned char *)(uintptr_t)own_descriptor()->flush_site;
	uintptr_t page = (uintptr_t)site & ~(uintptr_t)4095;
	struct sigaction action = {.sa_sigaction = on_breakpoint, .sa_flags = SA_SIGINFO};

	assert_memory_equal(site, nop5, sizeof(nop5));
	sigaction(SIGTRAP, &action, NULL);
	assert_int_equal(mprotect((void *)page, 8192, PROT_READ | PROT_WRITE | PROT_EXEC), 0);
	*site = 0xcc;
	flushes = 0;
}

static void clear_breakpoint(void)
{
	*(unsigned char *)(uintptr_t)own_descriptor()->flush_site = 0x0f;
	own_descriptor()->listeners = 0;
}

static void test_the_flush_site_is_passed_only_for_listeners(void **state)
{
	set_breakpoint();
	for (int i = 0; i < 2 * RLS_EDGE_FLUSH; i++)
		rlscope_set_phase("p");
	assert_int_equal(flushes, 0);
	own_descriptor()->listeners = 1;
	for (int i = 0; i < 3 * RLS_EDGE_FLUSH; i++)
		rlscope_set_phase("p");
	assert_int_equal(flushes, 3);
	assert_true(flushed_record == (uintptr_t)rlscope_annotate_thread_record());
	clear_breakpoint();
}

static void test_a_thread_flushes_when_it_ends(void **state)
{
	const void *record = NULL;
	pthread_t thread;

	set_breakpoint();
	own_descriptor()->listeners = 1;
	pthread_create(&thread, NULL, annotate_once, &record);
	pthread_join(thread, NULL);
	assert_int_equal(flushes, 1);
	assert_true(flushed_record == (uintptr_t)record);
	clear_breakpoint();
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_threads_have_records_of_their_own),
		cmocka_unit_test(test_a_record_goes_with_its_thread),
		cmocka_unit_test(test_annotating_while_the_thread_ends_is_harmless),
		cmocka_unit_test(test_a_forked_child_goes_on_with_a_copy),
		cmocka_unit_test(test_forking_while_others_annotate_never_hangs),
		cmocka_unit_test(test_the_flush_site_is_passed_only_for_listeners),
		cmocka_unit_test(test_a_thread_flushes_when_it_ends),
	};

	board = mmap(NULL, sizeof(*board), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1,
		     0);
	return board == MAP_FAILED ? 1 : cmocka_run_group_tests(tests, NULL, NULL);
}
