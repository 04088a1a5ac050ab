#include "userspace/names/plt.h"

#include <elf.h>
#include <errno.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "analysis/base/grow.h"
#include "userspace/machine_code/plt_stub.h"

/* The longest stub; those of 8 bytes are a jump and a nop of two. */
enum { STUB_BYTES = 16, SHORT_STUB_BYTES = 8, JUMP_BYTES = 6 };

/* One that the dynamic linker fills in with a function's address. */
struct word {
	uint64_t vaddr;
	const char *symbol;
	char *name; /* of stubs; NULL: not yet asked for */
};

struct rls_plt {
	struct rls_elf *elf;
	RLS_LIST(struct word) words; /* ascending */
};

/* A stub's place in the file. */
struct stub {
	uint64_t start, size_bytes, jump_end, word;
};

static int add_word(const struct rls_elf_relocation *relocation, void *context)
{
	struct rls_plt *plt = context;

	if ((relocation->type != R_X86_64_GLOB_DAT && relocation->type != R_X86_64_JUMP_SLOT) ||
	    !relocation->symbol || !*relocation->symbol)
		return 0;
	return rls_list_push(&plt->words,
			     (struct word){relocation->vaddr, relocation->symbol, NULL});
}

static int by_vaddr(const void *left, const void *right)
{
	const struct word *a = left, *b = right;

	return (a->vaddr > b->vaddr) - (a->vaddr < b->vaddr);
}

int rls_plt_read(struct rls_elf *elf, struct rls_plt **out)
{
	struct rls_plt *plt = calloc(1, sizeof(*plt));

	if (!plt)
		return -ENOMEM;
	plt->elf = elf;
	if (rls_elf_each_relocation(elf, add_word, plt)) {
		rls_plt_free(plt);
		return -ENOMEM;
	}
	if (plt->words.count)
		qsort(plt->words.items, plt->words.count, sizeof(struct word), by_vaddr);
	*out = plt;
	return 0;
}

void rls_plt_free(struct rls_plt *plt)
{
	if (!plt)
		return;
	for (size_t i = 0; i < plt->words.count; i++)
		free(plt->words.items[i].name);
	free(plt->words.items);
	free(plt);
}

/* The stub that begins at start, if any does. */
static bool stub_at(const struct rls_elf *elf, uint64_t start, struct stub *out)
{
	const uint8_t *bytes = rls_elf_bytes(elf, start, STUB_BYTES);
	int32_t displacement;

	for (size_t at = 0; bytes && at + JUMP_BYTES <= STUB_BYTES; at++) {
		if (bytes[at] != 0xff || bytes[at + 1] != 0x25 ||
		    rls_plt_stub_start(bytes, at, STUB_BYTES, start) != 0)
			continue;
		memcpy(&displacement, bytes + at + 2, sizeof(displacement));
		out->start = start;
		out->jump_end = start + at + JUMP_BYTES;
		out->size_bytes = !at && bytes[JUMP_BYTES] == 0x66 ? SHORT_STUB_BYTES : STUB_BYTES;
		out->word = out->jump_end + (uint64_t)(int64_t)displacement;
		return true;
	}
	return false;
}

/* The first of a PLT that resolves lazily: push *word; [bnd] jmp *word. */
static bool is_head(const struct rls_elf *elf, uint64_t vaddr)
{
	const uint8_t *bytes = rls_elf_bytes(elf, vaddr, STUB_BYTES);

	return bytes && bytes[0] == 0xff && bytes[1] == 0x35 &&
	       (bytes[6] == 0xff || bytes[7] == 0xff);
}

/* Functions may contain such a jump, or consist of it. Unwind tables describe a PLT as a whole,
 * if at all. */
static bool is_function(struct rls_elf *elf, const struct stub *stub)
{
	const struct rls_elf_extent *extent = rls_elf_extent_at(elf, stub->start);
	struct stub first;

	if (!extent)
		return false;
	if (extent->vaddr == stub->start)
		return extent->vaddr + extent->size_bytes == stub->jump_end;
	return !is_head(elf, extent->vaddr) && !stub_at(elf, extent->vaddr, &first);
}

const char *rls_plt_name(struct rls_plt *plt, uint64_t vaddr, uint64_t *start)
{
	uint64_t at = vaddr & ~(uint64_t)(SHORT_STUB_BYTES - 1);
	struct word *word, key;
	struct stub stub;
	char *name;

	if (!plt->words.count ||
	    (!stub_at(plt->elf, at, &stub) && !stub_at(plt->elf, at - SHORT_STUB_BYTES, &stub)) ||
	    vaddr - stub.start >= stub.size_bytes || is_function(plt->elf, &stub))
		return NULL;
	key.vaddr = stub.word;
	word = bsearch(&key, plt->words.items, plt->words.count, sizeof(key), by_vaddr);
	if (!word)
		return NULL;
	if (!word->name) {
		if (asprintf(&name, "%s@plt", word->symbol) < 0)
			return NULL;
		word->name = name;
	}
	*start = stub.start;
	return word->name;
}
