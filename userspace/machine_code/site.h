/* Sites: the addresses probed for boundary functions, chosen to be inexpensive and safe.
 *
 * The planner (planner.h) makes them from boundary functions; attach/ puts probes on
 * them; the kernel side knows them by the cookie of bpf/wire/. Offsets are file
 * offsets, as the kernel's uprobes want them.
 */
#ifndef RLS_SITE_H
#define RLS_SITE_H

#include <stdbool.h>
#include <stdint.h>

#include "analysis/event/category.h"

/* What executing the probed instruction costs: see binary/decoder.h. Numbers are in the
 * kernel wire format and in calibration names: append only. */
enum rls_site_class {
	RLS_SITE_NOP5 = 0, /* optimised to a call on kernels >= 6.18 */
	RLS_SITE_EMULATED = 1, /* nop, push, relative jmp/jcc/call: no single step */
	RLS_SITE_SINGLE_STEP = 2, /* everything else */
	RLS_SITE_CLASS_MAX = 3,
};

const char *
rls_site_class_name(enum rls_site_class site_class); /* "nop5", "emulated", "single-step" */

/* What the hit means for the thread's stack of categories. `sp` is the stack pointer at the
 * probed instruction; a frame is identified by the address of its return address. Every hit,
 * entries too, first ends the frames that sp proves over, with an event each; planner.h
 * relies on it. */
enum rls_site_kind {
	RLS_SITE_ENTER = 0, /* function entry: the return address is at sp + slot_bytes */
	RLS_SITE_ENTER_CALL =
		1, /* a call instruction, or what leads to nothing else (lead_in.h): the return address
	                             * will be at sp - 8 */
	RLS_SITE_LEAVE_RET =
		2, /* a ret, or what tells the same before it (epilogue.h, brief.h): frames at
	                             * or below sp + slot_bytes are over */
	RLS_SITE_LEAVE_AFTER = 3, /* behind a call instruction: frames below sp are over */
	RLS_SITE_KIND_MAX = 4,
};

enum rls_site_exit {
	RLS_EXIT_RETURN_PROBE, /* the kernel's return probe: only where no exception passes */
	RLS_EXIT_SITES, /* LEAVE sites of its own (also in the plan) */
	RLS_EXIT_UNSEEN, /* some way out has no site: noticed by the stack pointer at
	                             * the thread's next event */
	RLS_EXIT_NONE, /* this site is itself an exit */
};

/* The kernel side gets it as a multiple of 8 below this (bpf/wire/). */
#define RLS_SITE_SLOT_BYTES_MAX 8192
/* Of an entry seen from within the function: one word, what aligns the stack for a call (brief.h). */
#define RLS_SITE_ENTER_SLOT_BYTES 8

struct rls_site {
	uint64_t file_offset;
	uint64_t vaddr;
	const char *name; /* borrowed from the boundary function */
	enum rls_site_kind kind;
	enum rls_site_class site_class;
	enum rls_site_exit exit;
	enum rls_category category; /* ENTER*: category inside; LEAVE*: the library's own category,
	                             * i.e. where the thread is after a callback has returned */
	uint32_t slot_bytes; /* LEAVE_RET: how far above sp the return address lies; less than
	                             * RLS_SITE_SLOT_BYTES_MAX. ENTER: the same, 0 or RLS_SITE_ENTER_SLOT_BYTES */
	bool from_python; /* ENTER: only the interpreter calls it */
	bool jumped_to; /* ENTER: another function's end may be a jump to this one; one that
	                             * is not is entered by a call alone, so what had its return slot
	                             * before is over, left by an exception */
};

#endif
