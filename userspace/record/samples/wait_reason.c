#include "userspace/record/samples/wait_reason.h"

#include <stddef.h>
#include <sys/syscall.h>

/* What is not listed reads, writes or waits for such: most system calls that block do. */
static const struct {
	int32_t system_call;
	enum rls_sample_kind kind;
} reasons[] = {
	{SYS_futex, RLS_SAMPLE_WAIT_LOCK},          {SYS_semop, RLS_SAMPLE_WAIT_LOCK},
	{SYS_semtimedop, RLS_SAMPLE_WAIT_LOCK},     {SYS_flock, RLS_SAMPLE_WAIT_LOCK},
	{SYS_nanosleep, RLS_SAMPLE_WAIT_SLEEP},     {SYS_clock_nanosleep, RLS_SAMPLE_WAIT_SLEEP},
	{SYS_pause, RLS_SAMPLE_WAIT_SLEEP},         {SYS_rt_sigtimedwait, RLS_SAMPLE_WAIT_SLEEP},
	{SYS_rt_sigsuspend, RLS_SAMPLE_WAIT_SLEEP}, {SYS_wait4, RLS_SAMPLE_WAIT_CHILD},
	{SYS_waitid, RLS_SAMPLE_WAIT_CHILD},        {SYS_vfork, RLS_SAMPLE_WAIT_CHILD},
	{SYS_ioctl, RLS_SAMPLE_WAIT_GPU}, /* CUDA drivers wait so; terminals do not */
	{SYS_sched_yield, RLS_SAMPLE_WAIT_CPU},     {SYS_mmap, RLS_SAMPLE_WAIT_OTHER},
	{SYS_munmap, RLS_SAMPLE_WAIT_OTHER},        {SYS_madvise, RLS_SAMPLE_WAIT_OTHER},
	{SYS_mprotect, RLS_SAMPLE_WAIT_OTHER},      {SYS_brk, RLS_SAMPLE_WAIT_OTHER},
	{SYS_clone, RLS_SAMPLE_WAIT_OTHER},         {SYS_clone3, RLS_SAMPLE_WAIT_OTHER},
	{SYS_fork, RLS_SAMPLE_WAIT_OTHER},          {SYS_execve, RLS_SAMPLE_WAIT_OTHER},
	{SYS_exit, RLS_SAMPLE_WAIT_OTHER},          {SYS_exit_group, RLS_SAMPLE_WAIT_OTHER},
};

enum rls_sample_kind rls_wait_reason(int32_t system_call, uint32_t argument, bool preempted)
{
	if (preempted)
		return RLS_SAMPLE_WAIT_CPU;
	if (system_call < 0)
		return RLS_SAMPLE_WAIT_OTHER;
	/* For no file at all: Python's sleep before 3.11. */
	if ((system_call == SYS_select || system_call == SYS_pselect6) && !argument)
		return RLS_SAMPLE_WAIT_SLEEP;
	for (size_t i = 0; i < sizeof(reasons) / sizeof(reasons[0]); i++) {
		if (reasons[i].system_call == system_call)
			return reasons[i].kind;
	}
	return RLS_SAMPLE_WAIT_IO;
}
