#include "userspace/discover/callbacks/loaded_calls.h"

#include <errno.h>
#include <string.h>

#include "userspace/machine_code/pointer_trace.h"

enum {
	WORD_BYTES = 8,
	/* ModRM of a rip-relative operand, whatever its register */
	MODRM_MASK = 0xc7,
	MODRM_RIP = 0x05,
	DISPLACEMENT_BYTES = 4,
	STRUCTURE_BYTES = 64, /* of one searched for words: its first eight */
	RIP_STORE_BYTES_MIN = 6, /* opcode, ModRM, displacement */
	TABLE_WORDS_MAX = 4096,
	SEARCH_STEPS = 4, /* what beginning a search costs */
	BYTES_OF_STEP = 16, /* what is decoded in the time of a step */
};

/* An extent whose code names words, being looked at. */
struct reading {
	struct rls_loaded_calls *calls;
	struct rls_trace_code code;
	struct rls_leads *found; /* variables, or places */
	struct rls_leads *excluded; /* words that something else is stored to */
};

/* The word that a rip-relative operand names, with or without an immediate behind it; or the first of the
 * words in the structure or table whose beginning it names. */
static const struct rls_lead *word_at(const struct rls_leads *words, uint64_t named)
{
	const struct rls_lead *word = rls_leads_from(words, named);
	uint64_t ahead = word ? word->vaddr - named : STRUCTURE_BYTES;

	if (ahead == 0 || ahead == 1 || ahead == 4)
		return word;
	return ahead < STRUCTURE_BYTES && word->data ? word : NULL;
}

static int search_segment(const struct rls_elf_segment *segment, const uint8_t *bytes,
			  const struct rls_leads *words, struct rls_leads *references)
{
	uint64_t first = words->items[0].vaddr - STRUCTURE_BYTES;
	uint64_t span = words->items[words->count - 1].vaddr - first;

	for (size_t at = 0; at + 1 + DISPLACEMENT_BYTES <= segment->file_bytes; at++) {
		const struct rls_lead *word;
		int32_t displacement;
		uint64_t named;

		if ((bytes[at] & MODRM_MASK) != MODRM_RIP)
			continue;
		memcpy(&displacement, bytes + at + 1, sizeof(displacement));
		named = segment->vaddr + at + 1 + DISPLACEMENT_BYTES +
			(uint64_t)(int64_t)displacement;
		if (named - first > span)
			continue;
		word = word_at(words, named);
		if (!word)
			continue;
		if (rls_leads_add(references, &(struct rls_lead){.vaddr = segment->vaddr + at,
								 .symbol = word->symbol}) < 0)
			return -ENOMEM;
	}
	return 0;
}

/* Adds the places of code, as it seems, that name one of the words. */
static int find_references(const struct rls_elf *elf, const struct rls_leads *words,
			   struct rls_leads *references)
{
	const struct rls_elf_segment *segments;
	size_t count = words->count ? rls_elf_segments(elf, &segments) : 0;

	for (size_t i = 0; i < count; i++) {
		const uint8_t *bytes;

		if (!segments[i].executable || !segments[i].file_bytes)
			continue;
		bytes = rls_elf_bytes(elf, segments[i].vaddr, segments[i].file_bytes);
		if (bytes && search_segment(&segments[i], bytes, words, references) < 0)
			return -ENOMEM;
	}
	rls_leads_sort(references);
	return 0;
}

struct neighbour {
	uint64_t vaddr;
	bool relocated;
};

static int visit_neighbour(const struct rls_elf_relocation *relocation, void *context)
{
	struct neighbour *neighbour = context;

	neighbour->relocated |= relocation->vaddr == neighbour->vaddr;
	return neighbour->relocated;
}

/* A table of words that an index picks from. Where it ends is not known: it must be followed by
 * something that is no pointer. */
static const struct rls_lead *find_in_table(struct rls_loaded_calls *calls, uint64_t vaddr)
{
	const struct rls_lead *first = rls_leads_find(&calls->words, vaddr);
	struct neighbour neighbour = {.vaddr = vaddr};

	if (!first || !calls->tables_left)
		return NULL;
	calls->tables_left--;
	for (size_t i = 0; i < TABLE_WORDS_MAX && rls_leads_find(&calls->words, neighbour.vaddr);
	     i++)
		neighbour.vaddr += WORD_BYTES;
	rls_elf_each_relocation(calls->elf, visit_neighbour, &neighbour);
	return neighbour.relocated ? NULL : first;
}

/* Whether that much may still be done. Where it may not, nothing more is. */
static bool spend(struct rls_loaded_calls *calls, uint64_t steps)
{
	bool enough = calls->steps_left >= steps;

	calls->steps_left -= enough ? steps : calls->steps_left;
	return enough;
}

/* The function that spot holds before the step, the first in the alphabet of several; NULL when it may
 * hold anything else, or is always a null pointer. */
static const char *find_function(struct reading *reading, size_t step, const struct rls_spot *spot)
{
	struct rls_loaded_calls *calls = reading->calls;
	const char *symbol = NULL;
	struct rls_origins origins;

	if (!spend(calls, SEARCH_STEPS) ||
	    rls_trace(&reading->code, step, spot, &calls->steps_left, &origins) < 0)
		return NULL;
	for (size_t i = 0; i < origins.count; i++) {
		uint64_t vaddr = origins.items[i].vaddr;
		const struct rls_lead *word = origins.items[i].table
						      ? find_in_table(calls, vaddr)
						      : rls_leads_find(&calls->words, vaddr);

		if (!word)
			return NULL;
		if (!symbol || strcmp(word->symbol, symbol) < 0)
			symbol = word->symbol;
	}
	return symbol;
}

/* Each word touched by a store of something else. */
static int exclude_words(struct reading *reading, uint64_t vaddr, uint64_t size_bytes)
{
	const struct rls_leads *words = &reading->calls->words;

	for (uint64_t at = vaddr - (WORD_BYTES - 1); at < vaddr + size_bytes; at++) {
		const struct rls_lead *word = rls_leads_find(words, at);

		if (word && rls_leads_add(reading->excluded, word) < 0)
			return -ENOMEM;
	}
	return 0;
}

/* A store to a variable of the library: of such a function, of a null pointer, or of something else. */
static int read_store(struct reading *reading, size_t step)
{
	struct rls_lead variable = {.data = true};
	struct rls_effect effect;
	const char *symbol = NULL;

	if (reading->code.steps[step].flow != RLS_FLOW_NEXT ||
	    reading->code.steps[step].length < RIP_STORE_BYTES_MIN || !spend(reading->calls, 1) ||
	    rls_trace_effect(&reading->code, step, &effect) < 0 ||
	    effect.stored.kind != RLS_SPOT_MEMORY || effect.stored.base != RLS_NO_REGISTER ||
	    effect.stored.index != RLS_NO_REGISTER)
		return 0;
	variable.vaddr = (uint64_t)effect.stored.displacement;
	if (effect.target.kind == RLS_SPOT_MEMORY && effect.source.kind == RLS_SPOT_ZERO)
		return 0;
	if (effect.target.kind == RLS_SPOT_MEMORY)
		symbol = find_function(reading, step, &effect.source);
	if (!symbol)
		return exclude_words(reading, variable.vaddr, effect.stored_bytes);
	variable.symbol = symbol;
	return rls_leads_add(reading->found, &variable);
}

static int read_call(struct reading *reading, size_t step)
{
	const struct rls_trace_step *at = &reading->code.steps[step];
	struct rls_lead place = {
		.vaddr = reading->code.vaddr + at->offset,
		.jump = at->flow == RLS_FLOW_JUMP_INDIRECT,
		.length = at->length,
	};
	struct rls_effect effect;

	if ((at->flow != RLS_FLOW_CALL_INDIRECT && at->flow != RLS_FLOW_JUMP_INDIRECT) ||
	    !spend(reading->calls, 1) || rls_trace_effect(&reading->code, step, &effect) < 0)
		return 0;
	/* Calls and jumps through a word itself are another's: some are PLT stubs. */
	if (effect.source.kind == RLS_SPOT_MEMORY && effect.source.base == RLS_NO_REGISTER)
		return 0;
	place.symbol = find_function(reading, step, &effect.source);
	return place.symbol ? rls_leads_add(reading->found, &place) : 0;
}

/* Calls read for each instruction of the extents that name a word. */
static int each_instruction(struct reading *reading, const struct rls_leads *references,
			    int (*read)(struct reading *reading, size_t step))
{
	uint64_t end = 0;
	int err = 0;

	for (size_t i = 0; err == 0 && i < references->count; i++) {
		uint64_t vaddr = references->items[i].vaddr;
		const struct rls_elf_extent *extent =
			vaddr < end ? NULL : rls_elf_extent_at(reading->calls->elf, vaddr);

		if (!extent)
			continue;
		if (!spend(reading->calls, extent->size_bytes / BYTES_OF_STEP))
			break;
		end = extent->vaddr + extent->size_bytes;
		err = rls_trace_code_read(reading->calls->elf, extent,
					  reading->calls->has_landing_pads, &reading->code);
		for (size_t step = 0; err == 0 && step < reading->code.step_count; step++)
			err = read(reading, step);
		rls_trace_code_clear(&reading->code);
		if (err != -ENOMEM)
			err = 0;
	}
	return err;
}

static void take_out(struct rls_leads *words, struct rls_leads *excluded)
{
	size_t kept = 0;

	rls_leads_sort(excluded);
	for (size_t i = 0; i < words->count; i++)
		if (!rls_leads_find(excluded, words->items[i].vaddr))
			words->items[kept++] = words->items[i];
	words->count = kept;
}

struct beginnings {
	const struct rls_leads *words, *variables;
	struct rls_leads *excluded;
};

static int visit_beginning(const struct rls_elf_relocation *relocation, void *context)
{
	const struct beginnings *beginnings = context;
	const struct rls_lead *variable = rls_leads_find(beginnings->variables, relocation->vaddr);

	if (!variable || rls_leads_find(beginnings->words, relocation->vaddr))
		return 0;
	return rls_leads_add(beginnings->excluded, variable);
}

/* Variables that begin as something else than a null pointer. */
static int exclude_filled(const struct rls_loaded_calls *calls, const struct rls_leads *variables,
			  struct rls_leads *excluded)
{
	static const uint8_t null[WORD_BYTES];
	struct beginnings beginnings = {&calls->words, variables, excluded};
	int err = rls_elf_each_relocation(calls->elf, visit_beginning, &beginnings);

	for (size_t i = 0; err == 0 && i < variables->count; i++) {
		const struct rls_lead *variable = &variables->items[i];
		const uint8_t *bytes = rls_elf_bytes(calls->elf, variable->vaddr, WORD_BYTES);

		if (bytes && memcmp(bytes, null, WORD_BYTES) != 0 &&
		    !rls_leads_find(&calls->words, variable->vaddr))
			err = rls_leads_add(excluded, variable);
	}
	return err;
}

static void keep_offset_table(struct rls_leads *words)
{
	size_t kept = 0;

	for (size_t i = 0; i < words->count; i++)
		if (!words->items[i].data)
			words->items[kept++] = words->items[i];
	words->count = kept;
}

static int add_variables(struct rls_loaded_calls *calls, struct rls_leads *variables,
			 struct rls_leads *excluded)
{
	struct rls_leads references = {0}, again = {0};
	struct reading reading = {.calls = calls, .found = &again, .excluded = excluded};
	int err;

	rls_leads_sort(variables);
	err = exclude_filled(calls, variables, excluded);
	for (size_t i = 0; err == 0 && i < variables->count; i++)
		err = rls_leads_add(&calls->words, &variables->items[i]);
	rls_leads_sort(&calls->words);
	/* What other code stores there. */
	if (err == 0)
		err = find_references(calls->elf, variables, &references);
	if (err == 0)
		err = each_instruction(&reading, &references, read_store);
	for (size_t i = 0; err == 0 && i < references.count; i++)
		err = rls_leads_add(&calls->references, &references.items[i]);
	rls_leads_sort(&calls->references);
	rls_leads_clear(&references);
	rls_leads_clear(&again);
	return err;
}

int rls_loaded_words(struct rls_loaded_calls *calls)
{
	struct rls_leads variables = {0}, excluded = {0};
	struct reading reading = {.calls = calls, .found = &variables, .excluded = &excluded};
	int err;

	calls->has_landing_pads = rls_elf_has_section(calls->elf, ".gcc_except_table");
	rls_leads_sort(&calls->words);
	err = find_references(calls->elf, &calls->words, &calls->references);
	if (err == 0)
		err = each_instruction(&reading, &calls->references, read_store);
	if (err == 0 && variables.count)
		err = add_variables(calls, &variables, &excluded);
	take_out(&calls->words, &excluded);
	if (!calls->steps_left) /* Stores may have been left out. */
		keep_offset_table(&calls->words);
	rls_leads_clear(&variables);
	rls_leads_clear(&excluded);
	return err;
}

int rls_loaded_places(struct rls_loaded_calls *calls, struct rls_leads *places)
{
	struct reading reading = {.calls = calls, .found = places};

	return each_instruction(&reading, &calls->references, read_call);
}
