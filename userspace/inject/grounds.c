#include "userspace/inject/grounds.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "analysis/base/cleanup.h"
#include "userspace/elf/elf.h"
#include "userspace/inject/refuse.h"
#include "userspace/process/living_thread.h"

#define STATUS_BYTES 8192

static const uint8_t restorer_code[] = {0x48, 0xc7, 0xc0, 0x0f, 0, 0, 0, 0x0f, 0x05};

/* ---- addresses ---- */

bool rls_range_holds(const struct rls_range *range, uint64_t address)
{
	return address >= range->start && address < range->end;
}

bool rls_ranges_hold(const struct rls_range *ranges, size_t count, uint64_t address)
{
	for (size_t i = 0; i < count; i++) {
		if (rls_range_holds(&ranges[i], address))
			return true;
	}
	return false;
}

static int open_mapped(pid_t pid, const struct rls_mapping *mapping, struct rls_elf **out)
{
	_cleanup_free_ char *path = NULL;
	dev_t device;
	ino_t inode;
	int r = rls_mapping_locate(pid, mapping, &path, &device, &inode);

	return r ? r : rls_elf_open(path, out);
}

static int bias_of(const struct rls_elf *elf, const struct rls_mapping *mapping, uint64_t *out)
{
	uint64_t vaddr;
	int r = rls_elf_vaddr_of_offset(elf, mapping->file_offset, &vaddr);

	if (!r)
		*out = mapping->start - vaddr;
	return r;
}

static int function_at(const struct rls_elf *elf, uint64_t bias, const char *name, uint64_t *out)
{
	struct rls_elf_symbol symbol;
	int r = rls_elf_find_symbol(elf, name, &symbol);

	if (r)
		return r;
	if (!symbol.exported || !symbol.function || symbol.indirect ||
	    !rls_elf_is_executable(elf, symbol.vaddr))
		return -ENOENT;
	*out = bias + symbol.vaddr;
	return 0;
}

int rls_grounds_function(pid_t pid, const struct rls_mapping *mapping, const char *name,
			 uint64_t *out)
{
	struct rls_elf *elf;
	uint64_t bias;
	int r = open_mapped(pid, mapping, &elf);

	if (r)
		return r;
	r = bias_of(elf, mapping, &bias);
	if (!r)
		r = function_at(elf, bias, name, out);
	rls_elf_close(elf);
	return r;
}

/* ---- libraries ---- */

static const char *name_of(const struct rls_mapping *mapping)
{
	const char *slash = strrchr(mapping->path, '/');

	return slash ? slash + 1 : "";
}

static bool is_named(const struct rls_mapping *mapping, const char *prefix)
{
	return mapping->executable && !strncmp(name_of(mapping), prefix, strlen(prefix));
}

/* The no-operation that ends before code, by the assembler's lengths: how long it is, or 0. */
static size_t nop_before(const uint8_t *code, const uint8_t *begin)
{
	static const struct {
		size_t length;
		uint8_t bytes[8];
	} nops[] = {
		{1, {0x90}},
		{2, {0x66, 0x90}},
		{3, {0x0f, 0x1f, 0x00}},
		{4, {0x0f, 0x1f, 0x40}},
		{5, {0x0f, 0x1f, 0x44}},
		{6, {0x66, 0x0f, 0x1f, 0x44}},
		{7, {0x0f, 0x1f, 0x80}},
		{8, {0x0f, 0x1f, 0x84}},
	};

	for (size_t i = 0; i < sizeof(nops) / sizeof(nops[0]); i++) {
		size_t length = nops[i].length;

		if ((size_t)(code - begin) >= length &&
		    !memcmp(code - length, nops[i].bytes, length))
			return length;
	}
	return 0;
}

static int find_restorer(const struct rls_elf *elf, uint64_t bias,
			 const struct rls_mapping *mapping, struct rls_grounds *out)
{
	uint64_t vaddr = mapping->start - bias;
	size_t length = rls_elf_bytes_left(elf, vaddr);
	const uint8_t *bytes = rls_elf_bytes(elf, vaddr, length), *found;

	found = bytes ? memmem(bytes, length, restorer_code, sizeof(restorer_code)) : NULL;
	if (!found)
		return -ENOENT;
	out->restorer = mapping->start + (uint64_t)(found - bytes);
	out->way_back = out->restorer - nop_before(found, bytes);
	return 0;
}

/* Its functions under one roof: dlopen came to it from libdl with 2.34. */
static int survey_libc(struct rls_grounds *grounds, const struct rls_mapping *mapping)
{
	struct rls_elf *elf;
	uint64_t bias;
	int r = open_mapped(grounds->pid, mapping, &elf);

	if (r)
		return r;
	r = bias_of(elf, mapping, &bias);
	if (!r)
		r = function_at(elf, bias, "pthread_create", &grounds->pthread_create);
	if (!r)
		r = function_at(elf, bias, "pthread_detach", &grounds->pthread_detach);
	if (!r)
		r = function_at(elf, bias, "sched_yield", &grounds->sched_yield);
	if (!r)
		r = function_at(elf, bias, "dlopen", &grounds->dlopen);
	if (!r)
		r = find_restorer(elf, bias, mapping, grounds);
	grounds->libc = (struct rls_range){mapping->start, mapping->end};
	rls_elf_close(elf);
	return r;
}

static bool has_allocator(pid_t pid, const struct rls_mapping *mapping)
{
	static const char *const names[] = {"malloc", "calloc"};
	struct rls_elf_symbol symbol;
	struct rls_elf *elf;
	bool has = false;

	if (open_mapped(pid, mapping, &elf))
		return false;
	for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++)
		has |= !rls_elf_find_symbol(elf, names[i], &symbol) && symbol.exported;
	rls_elf_close(elf);
	return has;
}

static int add_unsafe(struct rls_grounds *grounds, const struct rls_mapping *mapping)
{
	if (grounds->unsafe_count == RLS_UNSAFE_MAX)
		return -E2BIG;
	grounds->unsafe[grounds->unsafe_count++] = (struct rls_range){mapping->start, mapping->end};
	return 0;
}

static bool is_system(const struct rls_mapping *mapping)
{
	return is_named(mapping, "libc.so.6") || is_named(mapping, "ld-linux");
}

static int survey_libraries(struct rls_grounds *grounds, const struct rls_mappings *mappings,
			    const struct rls_mapping **libc)
{
	int r = 0;

	for (size_t i = 0; !r && i < mappings->count; i++) {
		const struct rls_mapping *mapping = &mappings->entries[i];

		if (mapping->executable && rls_mapping_is_file(mapping) && !is_system(mapping) &&
		    has_allocator(grounds->pid, mapping))
			r = add_unsafe(grounds, mapping);
	}
	grounds->allocator_count = grounds->unsafe_count;
	for (size_t i = 0; !r && i < mappings->count; i++) {
		const struct rls_mapping *mapping = &mappings->entries[i];

		if (is_named(mapping, "libc.so.6"))
			*libc = mapping;
		if (is_system(mapping))
			r = add_unsafe(grounds, mapping);
	}
	return r;
}

/* ---- what /proc/PID/status says against it ---- */

static int read_status(pid_t pid, char text[STATUS_BYTES])
{
	_cleanup_fclose_ FILE *file = NULL;
	char path[RLS_PROCESS_PATH_BYTES];

	rls_process_path(path, pid, "status");
	file = fopen(path, "re");
	if (!file)
		return -errno;
	text[fread(text, 1, STATUS_BYTES - 1, file)] = '\0';
	return text[0] ? 0 : -ESRCH;
}

static const char *field(const char *status, const char *name)
{
	const char *line = strstr(status, name);

	return line ? line + strlen(name) + strspn(line + strlen(name), " \t") : "";
}

static int check_status(const char *status, char why[RLS_INJECT_WHY_BYTES])
{
	const char *features = field(status, "\nx86_Thread_features:");
	long tracer = strtol(field(status, "\nTracerPid:"), NULL, 10);
	char state = field(status, "\nState:")[0];
	char sandbox = field(status, "\nSeccomp:")[0];

	if (tracer)
		return rls_refuse(why, -EBUSY, "is traced by process %ld (a debugger?)", tracer);
	if (state == 'T' || state == 't')
		return rls_refuse(why, -EBUSY, "is stopped");
	if (state == 'Z' || state == 'X')
		return rls_refuse(why, -ESRCH, "has ended");
	if (memmem(features, strcspn(features, "\n"), "shstk", 5))
		return rls_refuse(why, -ENOTSUP, "has shadow stacks on");
	if (sandbox == '1')
		return rls_refuse(why, -ENOTSUP, "is in seccomp's strict mode");
	return 0;
}

int rls_grounds_survey(pid_t pid, struct rls_grounds *out, char why[RLS_INJECT_WHY_BYTES])
{
	struct rls_grounds grounds = {.pid = pid};
	const struct rls_mapping *libc = NULL;
	struct rls_mappings mappings;
	char status[STATUS_BYTES];
	int r = read_status(pid, status);

	if (r)
		return rls_refuse(why, r, "has ended, or cannot be read");
	r = check_status(status, why);
	if (r)
		return r;
	r = rls_mappings_read(pid, &mappings);
	if (r)
		return rls_refuse(why, r, "cannot be read: %s", strerror(-r));
	r = survey_libraries(&grounds, &mappings, &libc);
	if (r)
		rls_refuse(why, r, "has too many allocators");
	else if (!libc)
		r = rls_refuse(why, -ENOTSUP,
			       "is linked statically, or to another C library than glibc");
	else if (survey_libc(&grounds, libc))
		r = rls_refuse(why, -ENOTSUP, "has a C library older than glibc 2.34");
	else
		*out = grounds;
	rls_mappings_release(&mappings);
	return r;
}
