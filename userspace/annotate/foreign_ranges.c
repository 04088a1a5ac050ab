#include "userspace/annotate/foreign_ranges.h"

#include <elf.h>
#include <fnmatch.h>
#include <string.h>

#include "userspace/annotate/library_ranges.h"
#include "userspace/machine_code/decoder.h"

#define RECORD_FUNCTION_ENTER                                                                      \
	"_ZN5torch8autograd8profiler25record_function_enter_newERKNSt7__cxx1112basic_stringIcSt"   \
	"11char_traitsIcESaIcEEERK"
#define RECORD_FUNCTION_CONSTRUCTOR "_ZN2at14RecordFunctionC1ENS_11RecordScopeE"
#define RECORD_FUNCTION_END "_ZN2at14RecordFunction3endEv"

/* record_function_ops.cpp spans 0x1b00 and 0x4200 bytes in the torches looked at. */
#define NEARBY 0x10000

static const char *const libraries[] = {
	"libtorch_cpu.so*",
	"libnvToolsExt*.so*",
	"libnvtx3interop.so*",
};

/* Entries whose arguments are all there is to know. */
struct entry_hook {
	const char *symbol;
	enum rls_range_kind kind;
	uint8_t name_argument;
};

static const struct entry_hook nvtx_hooks[] = {
	{"nvtxRangePushA", RLS_RANGE_PUSH_CSTR, 0},
	{"nvtxRangePushW", RLS_RANGE_PUSH_WCSTR, 0},
	{"nvtxRangePushEx", RLS_RANGE_PUSH_NVTX_ATTRIBUTES, 0},
	{"nvtxDomainRangePushEx", RLS_RANGE_PUSH_NVTX_ATTRIBUTES, 1},
	{"nvtxRangePop", RLS_RANGE_POP, RLS_RANGE_NO_ARGUMENT},
	{"nvtxDomainRangePop", RLS_RANGE_POP, RLS_RANGE_NO_ARGUMENT},
};

#define BEGINNING(text) text,
static const char *const library_own_prefixes[] = {RLS_LIBRARY_RANGES(BEGINNING)};
#undef BEGINNING

#define NVTX_HOOKS (sizeof(nvtx_hooks) / sizeof(nvtx_hooks[0]))

/* A function as its callers see it: its address and the word that its PLT stub, or without a
 * PLT the caller itself, goes through. 0 each when there is none. */
struct callee {
	uint64_t vaddr;
	uint64_t word;
	bool plt;
};

struct finder {
	struct rls_elf *elf;
	/* Of the library; 0 for what it does not have. */
	uint64_t enter;
	struct callee constructor, end;
	uint64_t nvtx[NVTX_HOOKS];

	struct rls_range_site *sites;
	size_t count;
	size_t pushes;
};

static int foreign_ranges_decode(const struct rls_elf *elf, uint64_t vaddr,
				 struct rls_instruction *out)
{
	size_t left = rls_elf_bytes_left(elf, vaddr);
	const uint8_t *bytes = left ? rls_elf_bytes(elf, vaddr, left) : NULL;

	return bytes ? rls_decode(bytes, left, vaddr, out) : -1;
}

static void add_site(struct finder *finder, uint64_t vaddr, enum rls_range_kind kind,
		     uint8_t name_argument, uint8_t token_argument)
{
	struct rls_range_site *site = &finder->sites[finder->count];
	struct rls_instruction instruction;

	/* A symbol of that name may be anything. */
	if (finder->count == RLS_RANGE_SITES_MAX || !rls_elf_is_executable(finder->elf, vaddr) ||
	    foreign_ranges_decode(finder->elf, vaddr, &instruction) || !instruction.probeable ||
	    rls_elf_file_offset(finder->elf, vaddr, &site->file_offset) < 0)
		return;
	site->vaddr = vaddr;
	site->kind = kind;
	site->name_argument = name_argument;
	site->token_argument = token_argument;
	finder->count++;
	finder->pushes += kind != RLS_RANGE_POP;
}

/* One pass over the symbols: PyTorch has half a million. */
static int visit_symbol(const struct rls_elf_symbol *symbol, void *context)
{
	struct finder *finder = context;

	if (!symbol->defined || !symbol->exported)
		return 0;
	/* Its mangled name ends in std::optional's or c10::optional's, by version. */
	if (!strncmp(symbol->name, RECORD_FUNCTION_ENTER, sizeof(RECORD_FUNCTION_ENTER) - 1))
		finder->enter = symbol->vaddr;
	else if (!strcmp(symbol->name, RECORD_FUNCTION_CONSTRUCTOR))
		finder->constructor.vaddr = symbol->vaddr;
	else if (!strcmp(symbol->name, RECORD_FUNCTION_END))
		finder->end.vaddr = symbol->vaddr;
	else if (!strncmp(symbol->name, "nvtx", 4))
		for (size_t i = 0; i < NVTX_HOOKS; i++)
			if (!strcmp(symbol->name, nvtx_hooks[i].symbol))
				finder->nvtx[i] = symbol->vaddr;
	return 0;
}

static int visit_word(const struct rls_elf_relocation *relocation, void *context)
{
	struct finder *finder = context;
	struct callee *callee;

	if (!relocation->symbol)
		return 0;
	if (!strcmp(relocation->symbol, RECORD_FUNCTION_CONSTRUCTOR))
		callee = &finder->constructor;
	else if (!strcmp(relocation->symbol, RECORD_FUNCTION_END))
		callee = &finder->end;
	else
		return 0;
	/* Others, in tables, are function pointers. */
	if (relocation->plt || (relocation->type == R_X86_64_GLOB_DAT && !callee->plt)) {
		callee->word = relocation->vaddr;
		callee->plt = relocation->plt;
	}
	return 0;
}

/* The word a PLT stub jumps through, 0 for code that is no stub. */
static uint64_t stub_word(const struct rls_elf *elf, uint64_t vaddr)
{
	struct rls_instruction instruction;

	if (foreign_ranges_decode(elf, vaddr, &instruction))
		return 0;
	if (instruction.endbr &&
	    foreign_ranges_decode(elf, vaddr + instruction.length, &instruction))
		return 0;
	return instruction.flow == RLS_FLOW_JUMP_INDIRECT ? instruction.target : 0;
}

static bool is_call(const struct rls_instruction *branch)
{
	return branch->flow == RLS_FLOW_CALL || branch->flow == RLS_FLOW_CALL_INDIRECT;
}

static bool is_direct(const struct rls_instruction *branch)
{
	return branch->flow == RLS_FLOW_CALL || branch->flow == RLS_FLOW_JUMP;
}

static bool leads_to(const struct rls_elf *elf, const struct rls_instruction *branch,
		     const struct callee *callee)
{
	if (is_direct(branch) && callee->vaddr && branch->target == callee->vaddr)
		return true;
	if (!callee->word)
		return false;
	/* Where there is a PLT, who jumps through the word is the stub itself. */
	if (callee->plt)
		return is_direct(branch) && stub_word(elf, branch->target) == callee->word;
	return !is_direct(branch) && branch->target == callee->word;
}

/* Calls visit for the calls and jumps of a function, in order, until it says true. */
static void each_branch(struct rls_elf *elf, const struct rls_elf_extent *extent,
			bool (*visit)(struct rls_elf *elf, const struct rls_instruction *branch,
				      void *context),
			void *context)
{
	uint64_t vaddr = extent->vaddr, end = extent->vaddr + extent->size_bytes;
	struct rls_instruction instruction;

	for (; vaddr < end && !foreign_ranges_decode(elf, vaddr, &instruction);
	     vaddr += instruction.length) {
		if (!is_direct(&instruction) && instruction.flow != RLS_FLOW_CALL_INDIRECT &&
		    instruction.flow != RLS_FLOW_JUMP_INDIRECT)
			continue;
		if (visit(elf, &instruction, context))
			return;
	}
}

/* The first call after the constructor's, in record_function_enter_new. */
struct inner_search {
	const struct callee *constructor;
	bool constructed;
	uint64_t inner; /* 0: inlined */
};

static bool visit_inner(struct rls_elf *elf, const struct rls_instruction *branch, void *context)
{
	struct inner_search *search = context;

	if (!is_call(branch))
		return false;
	if (!search->constructed) {
		search->constructed = leads_to(elf, branch, search->constructor);
		return false;
	}
	/* A function of the same unit is called directly; anything else is not the one. */
	if (is_direct(branch) && !stub_word(elf, branch->target) &&
	    rls_elf_extent_at(elf, branch->target))
		search->inner = branch->target;
	return true;
}

/* Pushes and pops among a function's branches. */
struct site_search {
	struct finder *finder;
	uint64_t inner;
};

static bool visit_site(struct rls_elf *elf, const struct rls_instruction *branch, void *context)
{
	struct site_search *search = context;

	if (search->inner && is_direct(branch) && branch->target == search->inner)
		add_site(search->finder, branch->vaddr, RLS_RANGE_PUSH_STD_STRING, 0, 2);
	else if (leads_to(elf, branch, &search->finder->end))
		add_site(search->finder, branch->vaddr, RLS_RANGE_POP, RLS_RANGE_NO_ARGUMENT,
			 search->inner ? 0 : RLS_RANGE_NO_ARGUMENT);
	return false;
}

static void search_nearby(struct site_search *search, uint64_t vaddr)
{
	const struct rls_elf_extent *extents;
	size_t count = rls_elf_extents(search->finder->elf, &extents);

	for (size_t i = 0; i < count && extents[i].vaddr < vaddr + NEARBY; i++) {
		struct rls_elf_extent extent = extents[i];

		if (extent.vaddr + NEARBY <= vaddr)
			continue;
		/* A file that lies about sizes must not be read more than once. */
		if (i + 1 < count && extent.size_bytes > extents[i + 1].vaddr - extent.vaddr)
			extent.size_bytes = extents[i + 1].vaddr - extent.vaddr;
		if (extent.size_bytes > NEARBY)
			extent.size_bytes = NEARBY;
		each_branch(search->finder->elf, &extent, visit_site, search);
	}
}

static void find_record_function(struct finder *finder)
{
	struct inner_search inner = {.constructor = &finder->constructor};
	struct site_search search = {.finder = finder};
	const struct rls_elf_extent *extent;

	if (!finder->enter)
		return;
	rls_elf_each_relocation(finder->elf, visit_word, finder);
	extent = rls_elf_extent_at(finder->elf, finder->enter);
	if (!extent || (!finder->end.vaddr && !finder->end.word))
		return;
	each_branch(finder->elf, extent, visit_inner, &inner);
	search.inner = inner.inner;
	if (!search.inner)
		add_site(finder, finder->enter, RLS_RANGE_PUSH_STD_STRING, 1,
			 RLS_RANGE_NO_ARGUMENT);
	search_nearby(&search, finder->enter);
}

/* endbr64 is single-stepped, and what follows has the same registers. */
static uint64_t behind_endbr(const struct rls_elf *elf, uint64_t vaddr)
{
	struct rls_instruction instruction;

	if (foreign_ranges_decode(elf, vaddr, &instruction) || !instruction.endbr)
		return vaddr;
	return vaddr + instruction.length;
}

static void find_nvtx(struct finder *finder)
{
	for (size_t i = 0; i < NVTX_HOOKS; i++)
		if (finder->nvtx[i])
			add_site(finder, behind_endbr(finder->elf, finder->nvtx[i]),
				 nvtx_hooks[i].kind, nvtx_hooks[i].name_argument,
				 RLS_RANGE_NO_ARGUMENT);
}

bool rls_range_library(const char *file_name)
{
	for (size_t i = 0; i < sizeof(libraries) / sizeof(libraries[0]); i++)
		if (!fnmatch(libraries[i], file_name, 0))
			return true;
	return false;
}

size_t rls_range_sites(struct rls_elf *elf, struct rls_range_site sites[RLS_RANGE_SITES_MAX])
{
	struct finder finder = {.elf = elf, .sites = sites};

	rls_elf_each_symbol(elf, visit_symbol, &finder);
	find_record_function(&finder);
	find_nvtx(&finder);
	/* One without the other would only ever grow the stack, or only ever miss. */
	return finder.pushes && finder.pushes < finder.count ? finder.count : 0;
}

bool rls_range_is_library_own(const char *name)
{
	for (size_t i = 0; i < sizeof(library_own_prefixes) / sizeof(library_own_prefixes[0]); i++)
		if (!strncmp(name, library_own_prefixes[i], strlen(library_own_prefixes[i])))
			return true;
	return false;
}
