/* Why a thread does not run, by the system call it is in. Pure. */
#ifndef RLS_WAIT_REASON_H
#define RLS_WAIT_REASON_H

#include <stdbool.h>
#include <stdint.h>

#include "analysis/event/event.h"

/* system_call: its x86-64 number, -1 when it is in none (a page fault). argument: its first,
 * as far as 32 bits go. preempted: it was taken off its CPU while it could have gone on. */
enum rls_sample_kind rls_wait_reason(int32_t system_call, uint32_t argument, bool preempted);

#endif
