#include "userspace/discover/harvest.h"

#include <ctype.h>
#include <stdio.h>
#include <string.h>

#include "analysis/base/search.h"
#include "userspace/discover/type_slots.h"
#include "userspace/python/cpython_layout.h"

#define NAME_BYTES 256
#define QUALIFIED_BYTES (2 * NAME_BYTES)
/* Table entries read in all: some twenty times what PyTorch has. Tables of a hostile target
 * may be endless, and any number of types may point to each. */
#define MAX_ENTRIES (1UL << 20)
/* PyAsyncMethods has had am_send since 3.10. */
#define MINOR_WITH_AM_SEND 10

struct harvest {
	const struct rls_scan *scan;
	const struct rls_space *space;
	struct rls_harvest_library *libraries;
	enum rls_boundary_source method_source;
	unsigned int python_minor;
	size_t entries_left;
	int error;
};

static uint64_t harvest_load(const uint8_t *bytes)
{
	uint64_t word;

	memcpy(&word, bytes, sizeof(word));
	return word;
}

static bool may_read_entry(struct harvest *harvest)
{
	if (!harvest->entries_left)
		return false;
	harvest->entries_left--;
	return true;
}

/* Letters, digits and underscores; dots between, as in tp_name; "<lambda>". */
static bool is_identifier(const char *name)
{
	if (!isalpha((unsigned char)name[0]) && name[0] != '_' && name[0] != '<')
		return false;
	for (const char *at = name + 1; *at; at++)
		if (!isalnum((unsigned char)*at) && !strchr("_.<>", *at))
			return false;
	return true;
}

static bool read_identifier(const struct harvest *harvest, uint64_t address, char *name)
{
	return rls_space_read_name(harvest->space, address, name, NAME_BYTES) &&
	       is_identifier(name);
}

struct found {
	uint64_t function;
	const char *name;
	enum rls_name_rank rank;
	enum rls_boundary_source source;
	enum rls_boundary_kind kind; /* not given: the interpreter calls it */
};

/* Adds a function if it is a target's and begins where its unwind table says. */
static void harvest_add(struct harvest *harvest, const struct found *found)
{
	const struct rls_scan_target *target =
		rls_scan_target_of_code(harvest->scan, found->function);
	struct rls_harvest_library *library;
	const struct rls_elf_extent *extent;
	struct rls_find find = {
		.name = (char *)found->name,
		.rank = found->rank,
		.sources = found->source,
		.kind = found->kind,
	};

	if (!target)
		return;
	library = &harvest->libraries[target->library];
	find.vaddr = found->function - library->load_bias;
	if (!rls_elf_is_executable(library->elf, find.vaddr) ||
	    !rls_role_match_wants_method(library->match, found->name))
		return;
	extent = rls_elf_extent_at(library->elf, find.vaddr);
	if (extent && extent->vaddr != find.vaddr)
		return;
	find.size_bytes = extent ? extent->size_bytes : 0;
	if (rls_function_set_add(&library->functions, &find))
		harvest->error = -ENOMEM;
}

static void qualify(char *out, const char *scope, const char *name)
{
	snprintf(out, QUALIFIED_BYTES, "%s.%s", scope, name);
}

/* A NULL-terminated array of PyMethodDef: methods of a type or functions of a module. */
static void walk_methods(struct harvest *harvest, uint64_t table, const char *scope)
{
	char name[NAME_BYTES], qualified[QUALIFIED_BYTES];

	for (; table && may_read_entry(harvest); table += METHOD_BYTES) {
		uint8_t method[METHOD_BYTES];
		uint32_t flags;

		if (!rls_space_read(harvest->space, table, method, sizeof(method)) ||
		    !harvest_load(method + METHOD_NAME))
			return;
		memcpy(&flags, method + METHOD_FLAGS, sizeof(flags));
		if (!rls_scan_method_flags_valid(flags))
			return;
		if (!rls_scan_target_of_code(harvest->scan,
					     harvest_load(method + METHOD_FUNCTION)) ||
		    !read_identifier(harvest, harvest_load(method + METHOD_NAME), name))
			continue;
		qualify(qualified, scope, name);
		harvest_add(harvest,
			    &(struct found){.function = harvest_load(method + METHOD_FUNCTION),
					    .name = qualified,
					    .rank = RLS_NAME_QUALIFIED,
					    .source = harvest->method_source});
	}
}

/* What a node of PyTorch's graph keeps for its backward pass: half of all functions of its binding. Tools that
 * inspect graphs read it, training does not, and so many probes would delay the target for nothing. */
static bool is_kept_by_node(const char *name)
{
	return !strncmp(name, "_saved_", strlen("_saved_")) ||
	       !strncmp(name, "_raw_saved_", strlen("_raw_saved_"));
}

static void walk_getters(struct harvest *harvest, uint64_t table, const char *scope)
{
	char name[NAME_BYTES], qualified[QUALIFIED_BYTES];

	for (; table && may_read_entry(harvest); table += GETSET_BYTES) {
		uint8_t getset[GETSET_BYTES];
		struct found found = {
			.name = qualified, .rank = RLS_NAME_GETTER, .source = RLS_SOURCE_GETTER};

		if (!rls_space_read(harvest->space, table, getset, sizeof(getset)) ||
		    !harvest_load(getset + GETSET_NAME))
			return;
		if (!read_identifier(harvest, harvest_load(getset + GETSET_NAME), name))
			return;
		if (is_kept_by_node(name))
			continue;
		qualify(qualified, scope, name);
		found.function = harvest_load(getset + GETSET_GET);
		harvest_add(harvest, &found);
		strncat(qualified, " (set)", sizeof(qualified) - strlen(qualified) - 1);
		found.function = harvest_load(getset + GETSET_SET);
		harvest_add(harvest, &found);
	}
}

static void add_slot(struct harvest *harvest, uint64_t function, const char *scope,
		     const char *slot, enum rls_boundary_kind kind)
{
	char qualified[QUALIFIED_BYTES];

	if (!function || !rls_scan_target_of_code(harvest->scan, function))
		return;
	qualify(qualified, scope, slot);
	harvest_add(harvest, &(struct found){.function = function,
					     .name = qualified,
					     .rank = RLS_NAME_SLOT,
					     .source = RLS_SOURCE_SLOT,
					     .kind = kind});
}

static void walk_slot_table(struct harvest *harvest, const struct rls_slot_table *table,
			    uint64_t address, const char *scope)
{
	uint8_t words[RLS_SLOT_TABLE_MAX * 8];
	size_t count = table->count;

	if (table->type_offset == TYPE_AS_ASYNC && harvest->python_minor < MINOR_WITH_AM_SEND)
		count--;
	if (!address || !rls_space_read(harvest->space, address, words, count * 8))
		return;
	for (size_t i = 0; i < count; i++)
		if (table->names[i])
			add_slot(harvest, harvest_load(words + i * 8), scope, table->names[i],
				 RLS_BOUNDARY_PYTHON_CALLS);
}

static void harvest_type(struct harvest *harvest, uint64_t address)
{
	uint8_t type[TYPE_BYTES];
	char scope[NAME_BYTES];

	if (!rls_space_read(harvest->space, address, type, sizeof(type)) ||
	    !read_identifier(harvest, harvest_load(type + TYPE_NAME), scope))
		return;
	for (size_t i = 0; i < rls_type_slot_count; i++)
		add_slot(harvest, harvest_load(type + rls_type_slots[i].offset), scope,
			 rls_type_slots[i].name, RLS_BOUNDARY_PYTHON_CALLS);
	add_slot(harvest, harvest_load(type + TYPE_DEALLOC), scope, "tp_dealloc",
		 RLS_BOUNDARY_DROPPED);
	for (size_t i = 0; i < rls_slot_table_count; i++)
		walk_slot_table(harvest, &rls_slot_tables[i],
				harvest_load(type + rls_slot_tables[i].type_offset), scope);
	walk_methods(harvest, harvest_load(type + TYPE_METHODS), scope);
	walk_getters(harvest, harvest_load(type + TYPE_GETSET), scope);
}

static void harvest_module(struct harvest *harvest, uint64_t address)
{
	uint8_t definition[MODULE_DEF_BYTES];
	char scope[NAME_BYTES];

	if (!rls_space_read(harvest->space, address, definition, sizeof(definition)) ||
	    !read_identifier(harvest, harvest_load(definition + MODULE_DEF_NAME), scope))
		return;
	walk_methods(harvest, harvest_load(definition + MODULE_DEF_METHODS), scope);
}

static void harvest_method(struct harvest *harvest, const struct rls_scan_method *method)
{
	char name[NAME_BYTES];

	if (!read_identifier(harvest, method->name, name))
		return;
	harvest_add(harvest, &(struct found){.function = method->function,
					     .name = name,
					     .rank = RLS_NAME_METHOD,
					     .source = harvest->method_source});
}

static const struct rls_scan_type *find_type(const struct rls_scan *scan, uint64_t address)
{
	size_t low = rls_first_not(scan->types.count, i, scan->types.items[i].address < address);

	if (low == scan->types.count || scan->types.items[low].address != address)
		return NULL;
	return &scan->types.items[low];
}

/* Whether the object has a PyMethodDef where PyCFunction keeps one, for a function of the
 * same library: then the vectorcall function (Cython's) only goes on to that one. */
static bool wraps_a_method(const struct harvest *harvest, const uint64_t *object,
			   uint64_t vectorcall)
{
	uint8_t method[METHOD_BYTES];
	uint32_t flags;

	if (!rls_space_read(harvest->space, object[FUNCTION_METHOD / 8], method, sizeof(method)))
		return false;
	memcpy(&flags, method + METHOD_FLAGS, sizeof(flags));
	return rls_scan_method_flags_valid(flags) &&
	       rls_scan_target_of_code(harvest->scan, harvest_load(method + METHOD_FUNCTION)) ==
		       rls_scan_target_of_code(harvest->scan, vectorcall);
}

/* A word that points to code is a vectorcall pointer if, that many words before it, there is
 * an object of a type that keeps its pointer at that distance. */
static void harvest_callable(struct harvest *harvest, const struct rls_scan_callable *callable)
{
	for (size_t offset = 16; offset <= RLS_SCAN_BEFORE * 8; offset += 8) {
		const uint64_t *object = &callable->before[RLS_SCAN_BEFORE - offset / 8];
		const struct rls_scan_type *type = find_type(harvest->scan, object[1]);
		char scope[NAME_BYTES];
		uint64_t name;

		if (!type || type->vectorcall_offset != offset)
			continue;
		if (offset == FUNCTION_VECTORCALL &&
		    wraps_a_method(harvest, object, callable->function))
			continue;
		if (rls_space_read(harvest->space, type->address + TYPE_NAME, &name,
				   sizeof(name)) &&
		    read_identifier(harvest, name, scope))
			add_slot(harvest, callable->function, scope, "vectorcall",
				 RLS_BOUNDARY_PYTHON_CALLS);
	}
}

int rls_harvest(const struct rls_scan *scan, const struct rls_space *space,
		struct rls_harvest_library *libraries, enum rls_boundary_source method_source,
		unsigned int python_minor)
{
	struct harvest harvest = {
		.scan = scan,
		.space = space,
		.libraries = libraries,
		.method_source = method_source,
		.python_minor = python_minor,
		.entries_left = MAX_ENTRIES,
	};

	for (size_t i = 0; i < scan->methods.count && may_read_entry(&harvest); i++)
		harvest_method(&harvest, &scan->methods.items[i]);
	for (size_t i = 0; i < scan->types.count; i++)
		if (scan->types.items[i].related && may_read_entry(&harvest))
			harvest_type(&harvest, scan->types.items[i].address);
	for (size_t i = 0; i < scan->module_defs.count; i++)
		harvest_module(&harvest, scan->module_defs.items[i]);
	for (size_t i = 0; i < scan->callables.count; i++)
		harvest_callable(&harvest, &scan->callables.items[i]);
	return harvest.error;
}
