#include "userspace/discover/callbacks/callbacks.h"

#include <elf.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "userspace/discover/callbacks/leads.h"
#include "userspace/discover/callbacks/loaded_calls.h"
#include "userspace/machine_code/decoder.h"
#include "userspace/machine_code/plt_stub.h"

enum {
	CALL_REL32 = 0xe8,
	JUMP_REL32 = 0xe9,
	GROUP5 = 0xff,
	GROUP5_CALL_RIP = 0x15, /* call *disp32(%rip) */
	GROUP5_JUMP_RIP = 0x25, /* jmp *disp32(%rip) */
	REL32_BYTES = 5,
	RIP_BYTES = 6,
};

struct finder {
	struct rls_elf *elf;
	unsigned int families;
	struct rls_loaded_calls loaded; /* with the words that hold functions of libpython */
	struct rls_leads stubs, places;
};

static int add_lead(struct rls_leads *leads, uint64_t vaddr, const char *symbol, bool jump)
{
	return rls_leads_add(leads,
			     &(struct rls_lead){.vaddr = vaddr, .symbol = symbol, .jump = jump});
}

/* Words of the library that the loader fills: of the global offset table, or of its data. */
static bool is_word(const struct rls_elf_relocation *relocation)
{
	switch (relocation->type) {
	case R_X86_64_GLOB_DAT:
	case R_X86_64_JUMP_SLOT:
		return true;
	case R_X86_64_64:
		return !relocation->addend;
	default:
		return false;
	}
}

static int visit_relocation(const struct rls_elf_relocation *relocation, void *context)
{
	struct finder *finder = context;

	if (!is_word(relocation) || !relocation->symbol ||
	    !(rls_callback_families(relocation->symbol) & finder->families))
		return 0;
	return rls_leads_add(&finder->loaded.words,
			     &(struct rls_lead){.vaddr = relocation->vaddr,
						.symbol = relocation->symbol,
						.data = relocation->type == R_X86_64_64});
}

static uint64_t relative_target(const uint8_t *field, uint64_t next)
{
	int32_t displacement;

	memcpy(&displacement, field, sizeof(displacement));
	return next + (uint64_t)(int64_t)displacement;
}

/* Whether what looks like a stub is a function of its own: one that does nothing but tail-call,
 * of code built without a PLT. Its .eh_frame entry is as long as it is; a PLT's covers the
 * whole section. */
static bool is_function(struct finder *finder, uint64_t start, uint64_t end)
{
	const struct rls_elf_extent *extent = rls_elf_extent_at(finder->elf, start);

	return extent && extent->vaddr == start && extent->vaddr + extent->size_bytes == end;
}

/* Calls and jumps through a word. A jump is a stub's, or a tail call of code built
 * without a PLT. */
static int search_words(struct finder *finder, const uint8_t *bytes, size_t size, uint64_t vaddr)
{
	const uint8_t *end = bytes + size, *at = bytes;

	for (; at < end && (at = memchr(at, GROUP5, end - at)); at++) {
		size_t offset = at - bytes, start;
		const struct rls_lead *word;
		bool jump;
		int err;

		if (end - at < RIP_BYTES)
			break;
		if (at[1] != GROUP5_CALL_RIP && at[1] != GROUP5_JUMP_RIP)
			continue;
		word = rls_leads_find(&finder->loaded.words,
				      relative_target(at + 2, vaddr + offset + RIP_BYTES));
		if (!word)
			continue;
		jump = at[1] == GROUP5_JUMP_RIP;
		start = jump ? rls_plt_stub_start(bytes, offset, size, vaddr) : SIZE_MAX;
		if (start != SIZE_MAX &&
		    !is_function(finder, vaddr + start, vaddr + offset + RIP_BYTES))
			err = add_lead(&finder->stubs, vaddr + start, word->symbol, false);
		else
			err = add_lead(&finder->places, vaddr + offset, word->symbol, jump);
		if (err < 0)
			return err;
	}
	return 0;
}

static int search_stubs(struct finder *finder, const uint8_t *bytes, size_t size, uint64_t vaddr)
{
	uint64_t first, span;

	if (!finder->stubs.count || size < REL32_BYTES)
		return 0;
	first = finder->stubs.items[0].vaddr;
	span = finder->stubs.items[finder->stubs.count - 1].vaddr - first;
	for (size_t at = 0; at + REL32_BYTES <= size; at++) {
		const struct rls_lead *stub;
		uint64_t target;
		int err;

		if ((bytes[at] & 0xfe) != CALL_REL32)
			continue;
		target = relative_target(bytes + at + 1, vaddr + at + REL32_BYTES);
		if (target - first > span)
			continue;
		stub = rls_leads_find(&finder->stubs, target);
		if (!stub)
			continue;
		err = add_lead(&finder->places, vaddr + at, stub->symbol, bytes[at] == JUMP_REL32);
		if (err < 0)
			return err;
	}
	return 0;
}

static int search_code(struct finder *finder,
		       int (*search)(struct finder *finder, const uint8_t *bytes, size_t size,
				     uint64_t vaddr))
{
	const struct rls_elf_segment *segments;
	size_t count = rls_elf_segments(finder->elf, &segments);

	for (size_t i = 0; i < count; i++) {
		const struct rls_elf_segment *segment = &segments[i];
		const uint8_t *bytes;
		int err;

		if (!segment->executable || !segment->file_bytes)
			continue;
		bytes = rls_elf_bytes(finder->elf, segment->vaddr, segment->file_bytes);
		if (!bytes)
			continue;
		err = search(finder, bytes, segment->file_bytes, segment->vaddr);
		if (err < 0)
			return err;
	}
	return 0;
}

/* Whether the place's opcode ends this instruction; it begins earlier if it has prefixes. */
static bool is_place(const struct rls_lead *place, const struct rls_instruction *instruction)
{
	switch (instruction->flow) {
	case RLS_FLOW_CALL:
	case RLS_FLOW_JUMP:
		return instruction->vaddr + instruction->length == place->vaddr + REL32_BYTES;
	case RLS_FLOW_CALL_INDIRECT:
	case RLS_FLOW_JUMP_INDIRECT:
		return instruction->vaddr + instruction->length == place->vaddr + RIP_BYTES;
	default:
		return false;
	}
}

/* Of the sorted places in one extent, keeps those that are instructions of it. Returns how
 * many were looked at; kept grows by those kept. The first place lies in the extent. */
static size_t confirm_extent(struct finder *finder, const struct rls_elf_extent *extent,
			     const struct rls_lead *places, size_t count, struct rls_lead *kept,
			     size_t *kept_count)
{
	const uint8_t *bytes = rls_elf_bytes(finder->elf, extent->vaddr, extent->size_bytes);
	struct rls_instruction instruction = {0};
	uint64_t at = 0;
	size_t i = 0;

	for (; i < count && places[i].vaddr - extent->vaddr < extent->size_bytes; i++) {
		uint64_t wanted = places[i].vaddr - extent->vaddr;

		while (bytes && at <= wanted &&
		       rls_decode(bytes + at, extent->size_bytes - at, extent->vaddr + at,
				  &instruction) == 0)
			at += instruction.length;
		if (at > wanted && is_place(&places[i], &instruction)) {
			struct rls_lead *lead = &kept[(*kept_count)++];

			*lead = places[i];
			lead->vaddr = instruction.vaddr;
			lead->length = instruction.length;
		}
	}
	return i;
}

/* Decodes each extent with places in it once. Places are compacted in place. */
static void confirm(struct finder *finder)
{
	struct rls_leads *places = &finder->places;
	size_t kept = 0, i = 0;

	while (i < places->count) {
		const struct rls_elf_extent *extent =
			rls_elf_extent_at(finder->elf, places->items[i].vaddr);

		if (extent)
			i += confirm_extent(finder, extent, places->items + i, places->count - i,
					    places->items, &kept);
		else
			i++;
	}
	places->count = kept;
}

void rls_callbacks_free(struct rls_boundary_function *functions, size_t count)
{
	for (size_t i = 0; i < count; i++)
		free(functions[i].name);
	free(functions);
}

static int make_functions(const struct finder *finder, struct rls_boundary_function **out,
			  size_t *count)
{
	const struct rls_leads *places = &finder->places;
	struct rls_boundary_function *functions;

	functions = calloc(places->count ? places->count : 1, sizeof(*functions));
	if (!functions)
		return -ENOMEM;
	for (size_t i = 0; i < places->count; i++) {
		const struct rls_lead *place = &places->items[i];

		functions[i] = (struct rls_boundary_function){
			.vaddr = place->vaddr,
			.size_bytes = place->length,
			.name = strdup(place->symbol),
			.sources = RLS_SOURCE_CALLBACK,
			.kind = place->jump ? RLS_BOUNDARY_CALLBACK_JUMP
					    : RLS_BOUNDARY_CALLBACK_CALL,
		};
		if (!functions[i].name) {
			rls_callbacks_free(functions, i);
			return -ENOMEM;
		}
	}
	*out = functions;
	*count = places->count;
	return 0;
}

static int find_places(struct finder *finder)
{
	int err = rls_elf_each_relocation(finder->elf, visit_relocation, finder);

	if (err < 0)
		return err;
	err = rls_loaded_words(&finder->loaded);
	if (err < 0)
		return err;
	err = search_code(finder, search_words);
	if (err < 0)
		return err;
	rls_leads_sort(&finder->stubs);
	err = search_code(finder, search_stubs);
	if (err < 0)
		return err;
	rls_leads_sort(&finder->places);
	confirm(finder);
	err = rls_loaded_places(&finder->loaded, &finder->places);
	rls_leads_sort(&finder->places);
	return err;
}

int rls_find_callbacks_of(struct rls_elf *elf, unsigned int families,
			  struct rls_boundary_function **out, size_t *count)
{
	struct finder finder = {
		.elf = elf,
		.families = families,
		.loaded = {.elf = elf,
			   .steps_left = RLS_LOADED_STEPS,
			   .tables_left = RLS_LOADED_TABLES},
	};
	int err = find_places(&finder);

	if (err == 0)
		err = make_functions(&finder, out, count);
	rls_leads_clear(&finder.loaded.words);
	rls_leads_clear(&finder.loaded.references);
	rls_leads_clear(&finder.stubs);
	rls_leads_clear(&finder.places);
	return err;
}

int rls_find_callbacks(struct rls_elf *elf, struct rls_boundary_function **out, size_t *count)
{
	return rls_find_callbacks_of(elf, RLS_CALLBACKS_CALLING, out, count);
}

/* Cython puts this module name, of its own run-time support, into every module. */
static bool is_cython(const struct rls_elf *elf)
{
	static const char mark[] = "cython_runtime";
	const struct rls_elf_segment *segments;
	size_t count = rls_elf_segments(elf, &segments);

	for (size_t i = 0; i < count; i++) {
		const uint8_t *bytes;

		if (segments[i].executable || !segments[i].file_bytes)
			continue;
		bytes = rls_elf_bytes(elf, segments[i].vaddr, segments[i].file_bytes);
		if (bytes && memmem(bytes, segments[i].file_bytes, mark, sizeof(mark)))
			return true;
	}
	return false;
}

bool rls_calls_python_inline(const struct rls_elf *elf)
{
	static const char *const helpers[] = {"_PyObject_MakeTpCall", "_Py_CheckFunctionResult"};

	return rls_elf_imports_any(elf, helpers, sizeof(helpers) / sizeof(*helpers)) ||
	       is_cython(elf);
}

int rls_find_eval_entry(const struct rls_elf *python, struct rls_boundary_function *out)
{
	static const char name[] = "_PyEval_EvalFrameDefault";
	struct rls_elf_symbol symbol;
	char *copy;
	int err = rls_elf_find_symbol(python, name, &symbol);

	if (err < 0)
		return err;
	copy = strdup(name);
	if (!copy)
		return -ENOMEM;
	*out = (struct rls_boundary_function){
		.vaddr = symbol.vaddr,
		.size_bytes = symbol.size_bytes,
		.name = copy,
		.sources = RLS_SOURCE_SYMBOL,
		.kind = RLS_BOUNDARY_CALLBACK_ENTRY,
	};
	return 0;
}
