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

static bool add_site(struct rls_libc_sites *libc, const struct rls_elf *elf,
		     const struct rls_instruction *instruction, enum rls_memory_report report)
{
	struct rls_memory_site *site = &libc->sites[libc->count];

	if (rls_elf_file_offset(elf, instruction->vaddr, &site->file_offset) < 0)
		return false;
	site->report = report;
	site->site_class = instruction->site_class;
	libc->count++;
	return true;
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
	return add_site(libc, elf, &branches[best], RLS_MEMORY_COPY_BYTES) ? NULL : "a bad file";
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

size_t rls_libc_sites_of(struct rls_libc_sites *libc, const char *path, pid_t pid,
			 const struct rls_memory_site **out, const char **reason)
{
	struct own_libc own = {0};
	struct rls_elf *elf;
	bool same;

	*reason = "it cannot be read";
	if (rls_elf_open(path, &elf))
		return 0;
	*reason = "it is another build than the one that rlscope-bpf runs with";
	same = own_libc_find(&own) && is_own(&own, elf);
	if (same && !libc->tried) {
		libc->tried = true;
		libc->reason = try_copies(libc, &own, elf);
	}
	rls_elf_close(elf);
	if (!same)
		return 0;
	*reason = "the process has GLIBC_TUNABLES";
	if (has_tunables(pid))
		return 0;
	*reason = libc->reason;
	*out = libc->sites;
	return libc->count;
}
