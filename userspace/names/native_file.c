#include "userspace/names/native_file.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "analysis/base/grow.h"
#include "analysis/base/search.h"
#include "userspace/elf/elf.h"
#include "userspace/names/debug_file.h"
#include "userspace/names/plt.h"
#include "userspace/process/mappings.h"
#include "userspace/python/evaluation.h"

#define EVALUATION_LOOP "_PyEval_EvalFrameDefault"
#define EVALUATION_STEP "_TAIL_CALL_" /* 3.14 and later, by some compilers: one each */
/* A loop has every instruction in it: 34 to 86 KB in 3.8 to 3.14. */
#define EVALUATION_BYTES_MIN 16384

struct function {
	uint64_t vaddr, size_bytes;
	const char *name;
};

struct rls_native_file {
	struct rls_elf *elf;
	struct rls_elf *debug; /* its static symbols are the file's; NULL: none */
	struct rls_evaluation evaluation;
	RLS_LIST(struct function) functions; /* ascending; read at the first question */
	struct rls_plt *plt; /* NULL: out of memory */
	bool read;
	bool has_steps;
};

static int find_evaluation(struct rls_native_file *file)
{
	struct rls_elf_symbol loop;

	if (rls_elf_find_symbol(file->elf, EVALUATION_LOOP, &loop) &&
	    (!file->debug || rls_elf_find_static_symbol(file->debug, EVALUATION_LOOP, &loop)))
		return 0;
	if (!loop.size_bytes)
		return 0;
	return rls_evaluation_find(file->elf, loop.vaddr, loop.size_bytes, &file->evaluation);
}

static int file_new(struct rls_elf *elf, struct rls_native_file **out)
{
	struct rls_native_file *file = calloc(1, sizeof(*file));

	if (!file) {
		rls_elf_close(elf);
		return -ENOMEM;
	}
	file->elf = elf;
	*out = file;
	return 0;
}

int rls_native_file_open(const char *path, pid_t pid, const char *seen_path,
			 struct rls_native_file **out)
{
	struct rls_native_file *file;
	struct rls_elf *elf;
	int r = rls_elf_open(path, &elf);

	if (!r)
		r = file_new(elf, &file);
	if (r)
		return r;
	/* Now, while the process can still be asked where it is. */
	if (!rls_elf_has_static_symbols(elf) &&
	    rls_debug_file_open(elf, pid, seen_path, &file->debug))
		file->debug = NULL;
	r = find_evaluation(file);
	if (r) {
		rls_native_file_close(file);
		return r;
	}
	*out = file;
	return 0;
}

/* Every process has the same, ourselves included. */
int rls_native_file_open_vdso(struct rls_native_file **out)
{
	struct rls_mappings mappings;
	struct rls_elf *elf;
	int r = rls_mappings_read(getpid(), &mappings);

	if (r)
		return r;
	r = -ENOENT;
	for (size_t i = 0; r == -ENOENT && i < mappings.count; i++) {
		const struct rls_mapping *mapping = &mappings.entries[i];
		size_t count = mapping->end - mapping->start;
		uint8_t *bytes;

		if (strcmp(mapping->path, RLS_VDSO_PATH))
			continue;
		bytes = malloc(count);
		r = -ENOMEM;
		if (!bytes)
			break;
		memcpy(bytes, (const void *)mapping->start, count); /* NOLINT: an address */
		r = rls_elf_open_bytes(bytes, count, &elf);
	}
	rls_mappings_release(&mappings);
	return r ? r : file_new(elf, out);
}

void rls_native_file_close(struct rls_native_file *file)
{
	if (!file)
		return;
	rls_plt_free(file->plt);
	rls_elf_close(file->debug);
	rls_elf_close(file->elf);
	free(file->functions.items);
	free(file);
}

int rls_native_file_vaddr(const struct rls_native_file *file, uint64_t file_offset, uint64_t *out)
{
	return rls_elf_vaddr_of_offset(file->elf, file_offset, out);
}

int rls_native_file_frame_bytes(const struct rls_native_file *file, uint64_t vaddr, uint64_t *out)
{
	return rls_elf_frame_bytes(file->elf, vaddr, out);
}

static bool is_step(const char *name)
{
	return !strncmp(name, EVALUATION_STEP, sizeof(EVALUATION_STEP) - 1);
}

static int add_function(const struct rls_elf_symbol *symbol, void *context)
{
	struct rls_native_file *file = context;

	if (!symbol->defined || !symbol->function || !symbol->size_bytes || !*symbol->name)
		return 0;
	file->has_steps |= is_step(symbol->name);
	return rls_list_push(&file->functions,
			     (struct function){symbol->vaddr, symbol->size_bytes, symbol->name});
}

/* Of several names for one place the shortest, then the first: without @versions and the like. */
static int compare_functions(const void *a, const void *b)
{
	const struct function *left = a, *right = b;
	size_t left_length, right_length;

	if (left->vaddr != right->vaddr)
		return left->vaddr < right->vaddr ? -1 : 1;
	left_length = strlen(left->name);
	right_length = strlen(right->name);
	if (left_length != right_length)
		return left_length < right_length ? -1 : 1;
	return strcmp(left->name, right->name);
}

static int add_functions(struct rls_native_file *file)
{
	int r = rls_elf_each_symbol(file->elf, add_function, file);

	if (r || rls_elf_has_static_symbols(file->elf))
		return r;
	/* Unpacking costs, so it is done only for names that are asked for. */
	if (!file->debug && rls_debug_data_open(file->elf, &file->debug))
		file->debug = NULL;
	return file->debug ? rls_elf_each_static_symbol(file->debug, add_function, file) : 0;
}

static void read_functions(struct rls_native_file *file)
{
	file->read = true;
	if (add_functions(file))
		file->functions.count = 0; /* out of memory: no names */
	if (rls_plt_read(file->elf, &file->plt))
		file->plt = NULL;
	if (file->functions.count)
		qsort(file->functions.items, file->functions.count, sizeof(struct function),
		      compare_functions);
}

void rls_native_file_prepare(struct rls_native_file *file)
{
	if (!file->read)
		read_functions(file);
}

/* The last function that begins at or before vaddr and reaches over it; the first of those
 * that begin together. */
static const struct function *function_at(const struct rls_native_file *file, uint64_t vaddr)
{
	size_t low =
		rls_first_not(file->functions.count, i, file->functions.items[i].vaddr <= vaddr);

	while (low) {
		const struct function *function = &file->functions.items[low - 1];

		if (vaddr - function->vaddr >= function->size_bytes)
			return NULL;
		if (low == 1 || function[-1].vaddr != function->vaddr)
			return function;
		low--;
	}
	return NULL;
}

const char *rls_native_file_function(struct rls_native_file *file, uint64_t vaddr, uint64_t *start)
{
	const struct rls_elf_extent *extent;
	const struct function *function;
	const char *name;

	rls_native_file_prepare(file);
	function = function_at(file, vaddr);
	if (function) {
		*start = function->vaddr;
		return function->name;
	}
	name = file->plt ? rls_plt_name(file->plt, vaddr, start) : NULL;
	if (name)
		return name;
	extent = rls_elf_extent_at(file->elf, vaddr);
	*start = extent ? extent->vaddr : vaddr;
	return "";
}

bool rls_native_file_is_interpreter(const struct rls_native_file *file)
{
	return file->evaluation.count != 0;
}

void rls_native_file_evaluation(const struct rls_native_file *file, struct rls_evaluation *out)
{
	struct rls_evaluation found = {.count = 0};

	for (size_t i = 0; i < file->evaluation.count; i++) {
		struct rls_elf_extent part = file->evaluation.parts[i];

		if (!rls_elf_file_offset(file->elf, part.vaddr, &part.vaddr))
			found.parts[found.count++] = part;
	}
	*out = found;
}

bool rls_native_file_evaluates(struct rls_native_file *file, uint64_t vaddr)
{
	uint64_t start;

	if (!file->evaluation.count)
		return false;
	return rls_evaluation_holds(&file->evaluation, vaddr) ||
	       is_step(rls_native_file_function(file, vaddr, &start));
}

bool rls_native_file_hides_evaluation(struct rls_native_file *file)
{
	uint64_t bytes = 0;

	for (size_t i = 0; i < file->evaluation.count; i++)
		bytes += file->evaluation.parts[i].size_bytes;
	if (!file->evaluation.count || bytes >= EVALUATION_BYTES_MIN)
		return false;
	rls_native_file_prepare(file);
	return !file->has_steps;
}
