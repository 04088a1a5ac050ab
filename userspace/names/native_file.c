#include "userspace/names/native_file.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "userspace/discover/elf.h"
#include "userspace/discover/list.h"

#define EVALUATION_LOOP "_PyEval_EvalFrameDefault"

struct function {
	uint64_t vaddr, size_bytes;
	const char *name;
};

struct rls_native_file {
	struct rls_elf *elf;
	struct rls_elf_symbol evaluation;   /* size 0: no interpreter */
	RLS_LIST(struct function) functions; /* ascending; read at the first question */
	bool read;
};

int rls_native_file_open(const char *path, struct rls_native_file **out)
{
	struct rls_native_file *file = calloc(1, sizeof(*file));
	int r = file ? rls_elf_open(path, &file->elf) : -ENOMEM;

	if (r) {
		free(file);
		return r;
	}
	if (rls_elf_find_symbol(file->elf, EVALUATION_LOOP, &file->evaluation))
		file->evaluation = (struct rls_elf_symbol){0};
	*out = file;
	return 0;
}

void rls_native_file_close(struct rls_native_file *file)
{
	if (!file)
		return;
	rls_elf_close(file->elf);
	free(file->functions.items);
	free(file);
}

int rls_native_file_vaddr(const struct rls_native_file *file, uint64_t file_offset, uint64_t *out)
{
	return rls_elf_vaddr_of_offset(file->elf, file_offset, out);
}

static int add_function(const struct rls_elf_symbol *symbol, void *context)
{
	struct rls_native_file *file = context;

	if (!symbol->defined || !symbol->function || !symbol->size_bytes || !*symbol->name)
		return 0;
	return rls_list_push(&file->functions, (struct function){ symbol->vaddr, symbol->size_bytes,
								   symbol->name });
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

static void read_functions(struct rls_native_file *file)
{
	file->read = true;
	if (rls_elf_each_symbol(file->elf, add_function, file))
		file->functions.count = 0; /* out of memory: no names */
	if (file->functions.count)
		qsort(file->functions.items, file->functions.count, sizeof(struct function),
		      compare_functions);
}

/* The last function that begins at or before vaddr and reaches over it; the first of those
 * that begin together. */
static const struct function *function_at(const struct rls_native_file *file, uint64_t vaddr)
{
	size_t low = 0, high = file->functions.count;

	while (low < high) {
		size_t middle = low + (high - low) / 2;

		if (file->functions.items[middle].vaddr <= vaddr)
			low = middle + 1;
		else
			high = middle;
	}
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

	if (!file->read)
		read_functions(file);
	function = function_at(file, vaddr);
	if (function) {
		*start = function->vaddr;
		return function->name;
	}
	extent = rls_elf_extent_at(file->elf, vaddr);
	*start = extent ? extent->vaddr : vaddr;
	return "";
}

bool rls_native_file_is_interpreter(const struct rls_native_file *file)
{
	return file->evaluation.size_bytes != 0;
}

bool rls_native_file_evaluates(const struct rls_native_file *file, uint64_t vaddr)
{
	return vaddr - file->evaluation.vaddr < file->evaluation.size_bytes;
}
