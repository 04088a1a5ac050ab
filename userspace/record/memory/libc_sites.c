#include "userspace/record/memory/libc_sites.h"

#include <dlfcn.h>
#include <inttypes.h>
#include <link.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "analysis/base/cleanup.h"
#include "userspace/base/log.h"
#include "userspace/elf/elf.h"
#include "userspace/plan/libc_code.h"
#include "userspace/record/memory/code_trial.h"
#include "userspace/record/targets/process_info.h"

/* ---- copies ---- */

enum copy_way { COPY_APART, COPY_MEMCPY, COPY_MEMPCPY, COPY_DOWN, COPY_UP, COPY_WAYS };

/* All from COPIED_FROM on must be seen, once each; none up to COPIED_NEVER. */
#define COPIED_NEVER 256
#define COPIED_FROM 8192
static const size_t copy_bytes[] = {16,   100,  256,  600,   1100,   2100,    2200,
				    3000, 4200, 8192, 10001, 100000, 1048576, 50331648};
#define COPY_SIZES (sizeof(copy_bytes) / sizeof(copy_bytes[0]))
#define COPY_STEPS (COPY_SIZES * COPY_WAYS)
#define ROOM_BYTES (64UL << 20)
#define PAGES_BYTES (2UL << 20) /* that it consists of */
#define SHIFT_BYTES 200 /* by which copies overlap */

typedef void *copier(void *to, const void *from, size_t bytes);

static char *room; /* of the child, for copies: twice ROOM_BYTES, the same pages over and over */
static copier *copiers[COPY_WAYS]; /* the C library's own, whatever else is loaded */

struct copy {
	enum copy_way way;
	size_t bytes;
	const char *from;
	char *to;
};

static struct copy copy_of_step(size_t step)
{
	struct copy copy = {.way = step % COPY_WAYS, .bytes = copy_bytes[step / COPY_WAYS]};

	copy.from = room + SHIFT_BYTES;
	copy.to = room + ROOM_BYTES + 72;
	if (copy.way == COPY_DOWN)
		copy.to = room;
	else if (copy.way == COPY_UP)
		copy.to = room + 2UL * SHIFT_BYTES;
	return copy;
}

static void act_copy(size_t step)
{
	struct copy copy = copy_of_step(step);

	copiers[copy.way](copy.to, copy.from, copy.bytes);
}

struct copy_hits {
	size_t hits[RLS_TRIAL_SITES_MAX][COPY_STEPS];
	bool wrong[RLS_TRIAL_SITES_MAX]; /* the registers do not have what they should */
};

static void take_copy_hit(void *context, size_t site, size_t step,
			  const struct user_regs_struct *registers)
{
	struct copy_hits *seen = context;
	struct copy copy = copy_of_step(step);

	seen->hits[site][step]++;
	seen->wrong[site] |= registers->rdx != copy.bytes || registers->rdi != (uintptr_t)copy.to ||
			     registers->rsi != (uintptr_t)copy.from;
}

/* The smallest copy that is seen there; 0: the site is none. */
static size_t copies_from(const struct copy_hits *seen, size_t site)
{
	size_t least = 0;

	if (seen->wrong[site])
		return 0;
	for (size_t size = COPY_SIZES; size-- > 0;) {
		bool always = true, ever = false;

		for (size_t way = 0; way < COPY_WAYS; way++) {
			size_t hits = seen->hits[site][size * COPY_WAYS + way];

			always &= hits == 1;
			ever |= hits != 0;
		}
		/* Neither all copies of a size, nor all sizes from one on: none to rely on. */
		if (ever != always || (always && least && copy_bytes[size + 1] != least) ||
		    (always && copy_bytes[size] <= COPIED_NEVER) ||
		    (!always && copy_bytes[size] >= COPIED_FROM))
			return 0;
		if (always)
			least = copy_bytes[size];
	}
	return least;
}

/* ---- our own C library ---- */

struct own_libc {
	uint64_t base;
	uint64_t memmove_vaddr;
	const char *path; /* the loader's */
	const ElfW(Phdr) * segments;
	size_t count;
};

static int find_own(struct dl_phdr_info *info, size_t size, void *context)
{
	struct own_libc *own = context;

	if (info->dlpi_addr != own->base)
		return 0;
	own->segments = info->dlpi_phdr;
	own->count = info->dlpi_phnum;
	return 1;
}

static bool own_libc_find(struct own_libc *own)
{
	void *libc = dlopen("libc.so.6", RTLD_LAZY | RTLD_NOLOAD);
	void *address = libc ? dlsym(libc, "memmove") : NULL;
	Dl_info where;

	if (!address || !dladdr(address, &where))
		return false;
	copiers[COPY_APART] = copiers[COPY_DOWN] = copiers[COPY_UP] = (copier *)address;
	copiers[COPY_MEMCPY] = (copier *)dlsym(libc, "memcpy");
	copiers[COPY_MEMPCPY] = (copier *)dlsym(libc, "mempcpy");
	if (!copiers[COPY_MEMCPY] || !copiers[COPY_MEMPCPY])
		return false;
	own->base = (uintptr_t)where.dli_fbase;
	own->path = where.dli_fname;
	own->memmove_vaddr = (uintptr_t)address - own->base;
	return dl_iterate_phdr(find_own, own) == 1;
}

/* Whether the file has the code that we have mapped ourselves. */
static bool is_own(const struct own_libc *own, const struct rls_elf *elf)
{
	bool any = false;

	for (size_t i = 0; i < own->count; i++) {
		const ElfW(Phdr) *segment = &own->segments[i];
		const uint8_t *bytes;

		if (segment->p_type != PT_LOAD || !(segment->p_flags & PF_X))
			continue;
		bytes = rls_elf_bytes(elf, segment->p_vaddr, segment->p_filesz);
		if (!bytes || !rls_elf_is_executable(elf, segment->p_vaddr) ||
		    memcmp(bytes, (const void *)(own->base + segment->p_vaddr), /* NOLINT */
			   segment->p_filesz))
			return false;
		any = true;
	}
	return any;
}

/* ---- trial ---- */

static bool make_site(const struct rls_elf *elf, const struct rls_instruction *instruction,
		      enum rls_memory_report report, struct rls_memory_site *out)
{
	*out = (struct rls_memory_site){.report = report, .site_class = instruction->site_class};
	return rls_elf_file_offset(elf, instruction->vaddr, &out->file_offset) >= 0;
}

/* Little memory that looks like much. */
static void *map_room(void)
{
	_cleanup_close_ int fd = memfd_create("copies", MFD_CLOEXEC);
	char *start;

	if (fd < 0 || ftruncate(fd, PAGES_BYTES))
		return MAP_FAILED;
	start = mmap(NULL, 2 * ROOM_BYTES, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	for (size_t at = 0; start != MAP_FAILED && at < 2 * ROOM_BYTES; at += PAGES_BYTES) {
		if (mmap(start + at, PAGES_BYTES, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_FIXED,
			 fd, 0) != MAP_FAILED)
			continue;
		munmap(start, 2 * ROOM_BYTES);
		return MAP_FAILED;
	}
	return start;
}

/* NULL, or why not. Of several the one that is hit least. */
static const char *try_copies(struct rls_libc_sites *libc, const struct own_libc *own,
			      const struct rls_elf *elf)
{
	struct rls_instruction branches[RLS_TRIAL_SITES_MAX];
	uint64_t sites[RLS_TRIAL_SITES_MAX];
	size_t count = rls_libc_branches(elf, own->memmove_vaddr, branches, RLS_TRIAL_SITES_MAX);
	_cleanup_free_ struct copy_hits *seen = calloc(1, sizeof(*seen));
	const struct rls_code_trial trial = {.sites = sites,
					     .site_count = count,
					     .steps = COPY_STEPS,
					     .act = act_copy,
					     .hit = take_copy_hit,
					     .context = seen};
	size_t best = 0;
	int r;

	for (size_t i = 0; i < count; i++)
		sites[i] = own->base + branches[i].vaddr;
	room = map_room();
	r = seen && room != MAP_FAILED ? rls_code_trial_run(&trial) : -1;
	if (room != MAP_FAILED)
		munmap(room, 2 * ROOM_BYTES);
	if (r)
		return "a trial of its code in a child process failed";
	for (size_t i = 0; i < count; i++) {
		size_t from = copies_from(seen, i);

		if (from > libc->copies_from) {
			libc->copies_from = from;
			best = i;
		}
	}
	if (!libc->copies_from)
		return "no instruction of its memmove was seen at every large copy";
	rls_debug("memmove: +%#" PRIx64 ", copies of %" PRIu64 " bytes and more",
		  branches[best].vaddr, libc->copies_from);
	return make_site(elf, &branches[best], RLS_MEMORY_COPY_BYTES, &libc->copies)
		       ? NULL
		       : "its file is damaged";
}

/* ---- malloc ---- */

enum malloc_way { WAY_MALLOC, WAY_CALLOC, WAY_ALIGNED, WAY_REALLOC, WAY_AGAIN, MALLOC_WAYS };

/* In malloc's own terms none of them is close to a bound. */
static const size_t malloc_bytes[] = {16,     500,    1500,    4000,    5000,
				      20000,  30000,  100000,  110001,  300000,
				      400000, 500000, 5 << 20, 6 << 20, 40 << 20};
#define MALLOC_SIZES (sizeof(malloc_bytes) / sizeof(malloc_bytes[0]))
#define MALLOC_STEPS (MALLOC_SIZES * MALLOC_WAYS)
#define ALIGNMENT 64

struct rung_hits {
	const struct rls_libc_rung *rungs;
	unsigned int hits[RLS_TRIAL_SITES_MAX][MALLOC_STEPS];
	bool wrong[RLS_TRIAL_SITES_MAX]; /* another size was in the register */
};

static void *kept[MALLOC_STEPS]; /* of the child */

static void act_malloc(size_t step)
{
	size_t bytes = malloc_bytes[step / MALLOC_WAYS];

	switch (step % MALLOC_WAYS) {
	case WAY_MALLOC:
		kept[step] = malloc(bytes);
		break;
	case WAY_CALLOC:
		kept[step] = calloc(1, bytes);
		break;
	case WAY_ALIGNED:
		if (posix_memalign(&kept[step], ALIGNMENT, bytes))
			kept[step] = NULL;
		break;
	case WAY_REALLOC:
		kept[step] = realloc(malloc(24), bytes);
		break;
	case WAY_AGAIN: /* free blocks of these sizes are looked through on the way */
		free(kept[step - WAY_AGAIN]);
		free(kept[step - WAY_AGAIN + WAY_ALIGNED]);
		kept[step] = malloc(bytes + 32);
		break;
	}
}

/* What malloc makes of the size that is asked for. */
static uint64_t least_of_step(size_t step)
{
	uint64_t bytes = malloc_bytes[step / MALLOC_WAYS];

	if (step % MALLOC_WAYS == WAY_AGAIN)
		bytes += 32;
	return (bytes + 8 + 15) & ~15ULL;
}

static uint64_t most_of_step(size_t step)
{
	return least_of_step(step) + (step % MALLOC_WAYS == WAY_ALIGNED ? 2 * ALIGNMENT : 0);
}

static uint64_t register_of(const struct user_regs_struct *registers, uint8_t number)
{
	const uint64_t values[16] = {
		registers->rax, registers->rcx, registers->rdx, registers->rbx,
		registers->rsp, registers->rbp, registers->rsi, registers->rdi,
		registers->r8,  registers->r9,  registers->r10, registers->r11,
		registers->r12, registers->r13, registers->r14, registers->r15};

	return values[number & 15];
}

static void take_malloc_hit(void *context, size_t site, size_t step,
			    const struct user_regs_struct *registers)
{
	struct rung_hits *seen = context;
	uint64_t bytes = register_of(registers, seen->rungs[site].size_register);

	seen->hits[site][step]++;
	seen->wrong[site] |= bytes < least_of_step(step) || bytes > most_of_step(step);
}

/* Whether the sites of a rung, together, see each block from its size on once, and no other. */
static bool is_rung(const struct rung_hits *seen, size_t count, uint8_t rung)
{
	for (size_t step = 0; step < MALLOC_STEPS; step++) {
		unsigned int hits = 0;

		for (size_t i = 0; i < count; i++)
			if (seen->rungs[i].rung == rung && !seen->wrong[i])
				hits += seen->hits[i][step];
		if (hits != (least_of_step(step) >= rls_libc_rung_bytes[rung]))
			return false;
	}
	return true;
}

static void take_rung(struct rls_libc_rung_sites *out, const struct rls_elf *elf,
		      const struct rung_hits *seen, size_t count, uint8_t rung)
{
	for (size_t i = 0; i < count; i++) {
		unsigned int hits = 0;

		for (size_t step = 0; step < MALLOC_STEPS; step++)
			hits += seen->hits[i][step];
		if (seen->rungs[i].rung != rung || seen->wrong[i] || !hits)
			continue;
		if (out->count == RLS_LIBC_RUNG_SITES_MAX ||
		    !make_site(elf, &seen->rungs[i].instruction, RLS_MEMORY_RUNG,
			       &out->sites[out->count])) {
			out->count = 0;
			return;
		}
		out->sites[out->count++].size_register = seen->rungs[i].size_register;
	}
}

/* NULL, or why there is no rung. */
static const char *try_rungs(struct rls_libc_sites *libc, const struct own_libc *own,
			     const struct rls_elf *elf)
{
	struct rls_libc_rung rungs[RLS_TRIAL_SITES_MAX];
	uint64_t sites[RLS_TRIAL_SITES_MAX];
	size_t count = rls_libc_rungs(elf, rungs, RLS_TRIAL_SITES_MAX), found = 0;
	_cleanup_free_ struct rung_hits *seen = calloc(1, sizeof(*seen));
	const struct rls_code_trial trial = {.sites = sites,
					     .site_count = count,
					     .steps = MALLOC_STEPS,
					     .act = act_malloc,
					     .hit = take_malloc_hit,
					     .context = seen};

	for (size_t i = 0; i < count; i++)
		sites[i] = own->base + rungs[i].instruction.vaddr;
	if (!count)
		return "its malloc does not compare sizes as glibc does";
	if (!seen)
		return "there is no memory for a trial of its code";
	seen->rungs = rungs;
	if (rls_code_trial_run(&trial))
		return "a trial of its code in a child process failed";
	for (uint8_t rung = 0; rung < RLS_LIBC_RUNGS; rung++) {
		if (is_rung(seen, count, rung))
			take_rung(&libc->rungs[rung], elf, seen, count, rung);
		found += libc->rungs[rung].count != 0;
		if (libc->rungs[rung].count)
			rls_debug("malloc: blocks of %u bytes and more, %zu sites",
				  rls_libc_rung_bytes[rung], libc->rungs[rung].count);
	}
	return found ? NULL : "no instruction of its malloc was seen at every large block";
}

/* Other code or other caches may be in use then. */
static bool has_tunables(pid_t pid)
{
	static const char name[] = "GLIBC_TUNABLES=";
	_cleanup_free_ char *text = NULL;
	size_t length;

	if (rls_process_read(pid, "environ", &text, &length))
		return false;
	for (size_t at = 0; at + sizeof(name) <= length; at += strlen(text + at) + 1)
		if (!strncmp(text + at, name, sizeof(name) - 1))
			return true;
	return false;
}

static void try_all(struct rls_libc_sites *libc, const struct own_libc *own,
		    const struct rls_elf *elf)
{
	if (libc->tried)
		return;
	libc->tried = true;
	libc->copies_reason = try_copies(libc, own, elf);
	libc->rungs_reason = try_rungs(libc, own, elf);
}

void rls_libc_sites_prepare(struct rls_libc_sites *libc)
{
	struct own_libc own = {0};
	struct rls_elf *elf;

	if (!own_libc_find(&own) || rls_elf_open(own.path, &elf))
		return;
	if (is_own(&own, elf))
		try_all(libc, &own, elf);
	rls_elf_close(elf);
}

const char *rls_libc_sites_fit(struct rls_libc_sites *libc, const char *path, pid_t pid)
{
	struct own_libc own = {0};
	struct rls_elf *elf;
	bool same;

	if (rls_elf_open(path, &elf))
		return "it cannot be read";
	same = own_libc_find(&own) && is_own(&own, elf);
	if (same)
		try_all(libc, &own, elf);
	rls_elf_close(elf);
	if (!same)
		return "it is another build than the one that rlscope-bpf runs with";
	return has_tunables(pid) ? "the process has GLIBC_TUNABLES" : NULL;
}
