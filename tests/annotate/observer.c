#include "observer.h"

#include <dlfcn.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/uio.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

uint64_t own_thread_pointer(void)
{
	uint64_t thread_pointer;

	__asm__("mov %%fs:0, %0" : "=r"(thread_pointer));
	return thread_pointer;
}

struct rls_annotate_descriptor *own_descriptor(void)
{
	struct rls_annotate_descriptor *descriptor =
		dlsym(RTLD_DEFAULT, "rlscope_annotate_descriptor");

	assert_non_null(descriptor);
	return descriptor;
}

static void run_child(void (*scenario)(void), int report_fd, int wait_fd)
{
	uint64_t thread_pointer = own_thread_pointer();
	char byte;

	prctl(PR_SET_PDEATHSIG, SIGKILL);
	scenario();
	if (write(report_fd, &thread_pointer, sizeof(thread_pointer)) != sizeof(thread_pointer))
		_exit(2);
	while (read(wait_fd, &byte, 1) > 0)
		;
	_exit(0);
}

struct target target_start(void (*scenario)(void))
{
	struct target target = {0};
	int report[2], release[2];

	assert_int_equal(pipe(report), 0);
	assert_int_equal(pipe(release), 0);
	target.pid = fork();
	assert_true(target.pid >= 0);
	if (!target.pid) {
		close(report[0]);
		close(release[1]);
		run_child(scenario, report[1], release[0]);
	}
	close(report[1]);
	close(release[0]);
	assert_int_equal(read(report[0], &target.thread_pointer, sizeof(target.thread_pointer)),
			 sizeof(target.thread_pointer));
	close(report[0]);
	target.release_fd = release[1];
	return target;
}

int target_end(struct target *target)
{
	int status;

	close(target->release_fd);
	assert_int_equal(waitpid(target->pid, &status, 0), target->pid);
	return status;
}

int read_memory(pid_t pid, uint64_t address, void *out, size_t length)
{
	struct iovec local = {out, length}, remote = {(void *)(uintptr_t)address, length};

	return process_vm_readv(pid, &local, 1, &remote, 1, 0) == (ssize_t)length ? 0 : -1;
}

struct rls_annotate_descriptor read_descriptor(pid_t pid)
{
	struct rls_annotate_descriptor descriptor;

	/* A forked child has it where we have it. */
	assert_int_equal(
		read_memory(pid, (uintptr_t)own_descriptor(), &descriptor, sizeof(descriptor)), 0);
	return descriptor;
}

uint64_t record_address(pid_t pid, uint64_t thread_pointer)
{
	uint64_t address;

	assert_int_equal(read_memory(pid,
				     thread_pointer + read_descriptor(pid).thread_pointer_offset,
				     &address, sizeof(address)),
			 0);
	return address;
}

struct rls_thread_record read_record(const struct target *target)
{
	struct rls_thread_record record;
	uint64_t address = record_address(target->pid, target->thread_pointer);

	assert_true(address != 0);
	assert_int_equal(read_memory(target->pid, address, &record, sizeof(record)), 0);
	return record;
}

const char *read_name(pid_t pid, uint64_t address)
{
	static struct rls_name names[8];
	static unsigned int next;
	struct rls_name *name = &names[next++ % 8];

	if (!address)
		return "";
	assert_int_equal(read_memory(pid, address, name, sizeof(*name)), 0);
	assert_true(name->length < RLS_NAME_BYTES);
	assert_int_equal(strlen(name->text), name->length);
	return name->text;
}
