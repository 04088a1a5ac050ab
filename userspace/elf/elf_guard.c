/* Surviving a file that is cut short while it is mapped.
 *
 * The target owns the library: it may truncate it at any instant, and a read of a mapped
 * page behind the new end raises SIGBUS. The handler puts zeros there and lets the read go
 * on; the tables are checked anyway and read as broken or empty. Any other SIGBUS goes to
 * whoever handled it before.
 */
#include <signal.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/mman.h>

#include "userspace/elf/elf_guard.h"

#define GUARD_SLOTS 4096
#define PAGE_BYTES 4096UL

static struct {
	_Atomic uintptr_t begin; /* 0: the slot is free; 1: being filled */
	_Atomic uintptr_t end;
} slots[GUARD_SLOTS];

static bool is_guarded(uintptr_t address)
{
	for (size_t i = 0; i < GUARD_SLOTS; i++) {
		uintptr_t begin = atomic_load(&slots[i].begin);

		if (begin > 1 && address >= begin && address < atomic_load(&slots[i].end))
			return true;
	}
	return false;
}

static struct sigaction previous = {.sa_handler = SIG_DFL};

static void patch_or_pass_on(int signal_number, siginfo_t *info, void *context)
{
	uintptr_t page = (uintptr_t)info->si_addr & ~(PAGE_BYTES - 1);

	if (is_guarded((uintptr_t)info->si_addr) &&
	    mmap((void *)page, PAGE_BYTES, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1,
		 0) != MAP_FAILED)
		return;
	/* Returning repeats the access, now with the action of before. */
	sigaction(signal_number, &previous, NULL);
}

/* At each new mapping, because others (test frameworks, sanitizers) set handlers too. */
static void install_handler(void)
{
	struct sigaction action = {.sa_sigaction = patch_or_pass_on, .sa_flags = SA_SIGINFO};
	struct sigaction current;

	if (sigaction(SIGBUS, NULL, &current) || current.sa_sigaction == patch_or_pass_on)
		return;
	previous = current;
	sigemptyset(&action.sa_mask);
	sigaction(SIGBUS, &action, NULL);
}

int elf_guard_add(const void *address, size_t size_bytes)
{
	install_handler();
	for (int i = 0; i < GUARD_SLOTS; i++) {
		uintptr_t free_slot = 0;

		if (!atomic_compare_exchange_strong(&slots[i].begin, &free_slot, 1))
			continue;
		atomic_store(&slots[i].end, (uintptr_t)address + size_bytes);
		atomic_store(&slots[i].begin, (uintptr_t)address);
		return i;
	}
	return -1;
}

void elf_guard_remove(int slot)
{
	if (slot >= 0)
		atomic_store(&slots[slot].begin, 0);
}
