#include "userspace/record/layers/layer_probes.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "analysis/base/cleanup.h"
#include "analysis/base/grow.h"
#include "userspace/attach/kernel/kernel_layers.h"
#include "userspace/base/log.h"
#include "userspace/cpu/cpu_priority.h"
#include "userspace/elf/elf.h"
#include "userspace/plan/layer_sites.h"
#include "userspace/record/probes/modified_files.h"
#include "userspace/record/probes/stack_switching.h"

#define WRITTEN_AT_ONCE 16
#define TORCH_MODULES "torch.nn.modules.module"

void rls_layer_probes_open(struct rls_layer_probes_table *table, struct rls_kernel *kernel)
{
	*table = (struct rls_layer_probes_table){.kernel = kernel,
						 .written_fd = rls_modified_files_open()};
}

void rls_layer_probes_close(struct rls_layer_probes_table *table)
{
	for (size_t i = 0; i < table->count; i++)
		free(table->files[i].path), free(table->files[i].host_path);
	free(table->files);
	if (table->kernel && table->written_fd >= 0)
		close(table->written_fd);
	*table = (struct rls_layer_probes_table){.written_fd = -1};
}

/* ---- the function ---- */

/* What objects of that class are called by; 0: not known yet. */
static uint64_t call_of_builtin(const struct rls_object_reader *reader, uint64_t runtime)
{
	static const char *const names[] = {"exit", "help", "quit", "copyright"};
	struct rls_dict builtins;
	uint64_t call = 0;

	if (!rls_module_open(reader, runtime, "builtins", &builtins))
		return 0;
	for (size_t i = 0; !call && i < sizeof(names) / sizeof(names[0]); i++) {
		uint64_t object = rls_dict_find(reader, &builtins, names[i]);
		uint64_t type = object ? rls_object_class(reader, object) : 0;

		call = type ? rls_class_call(reader, type) : 0;
	}
	return call;
}

/* Where Python runs without its site module. */
static uint64_t call_of_torch(const struct rls_object_reader *reader, uint64_t runtime)
{
	struct rls_dict modules;
	uint64_t type;

	if (!rls_module_open(reader, runtime, TORCH_MODULES, &modules))
		return 0;
	type = rls_dict_find(reader, &modules, RLS_LAYER_BASE);
	return type ? rls_class_call(reader, type) : 0;
}

static uint64_t find_function(const struct rls_object_reader *reader,
			      const struct rls_python *python)
{
	const struct rls_mapping *mapping = python->mapping;
	uint64_t call = call_of_builtin(reader, python->runtime);

	if (!call)
		call = call_of_torch(reader, python->runtime);
	return call >= mapping->start && call < mapping->end ? call : 0;
}

/* ---- files ---- */

static struct rls_layer_probed *find_file(const struct rls_layer_probes_table *table,
					  const struct rls_file *identity)
{
	for (size_t i = 0; i < table->count; i++)
		if (table->files[i].identity == identity)
			return &table->files[i];
	return NULL;
}

static int find_sites(const char *path, uint64_t vaddr, struct rls_layer_sites *sites)
{
	_priority_ = rls_priority_set(RLS_PRIORITY_SPARE);
	struct rls_elf *elf;
	int r = rls_elf_open(path, &elf);

	if (r)
		return r;
	r = rls_layer_sites_find(elf, vaddr, sites);
	rls_elf_close(elf);
	return r;
}

static uint32_t number_of(const struct rls_layer_probes_table *table,
			  const struct rls_layer_probed *file)
{
	return (uint32_t)(file - table->files);
}

static void give_up(const struct rls_layer_probes_table *table, struct rls_layer_probed *file)
{
	rls_modified_files_unwatch(table->written_fd, file->watch);
	file->watch = -1;
	file->refused = true;
}

static int spare_file(const struct rls_layer_probes_table *table, struct rls_layer_probed *file)
{
	file->spared = true;
	return rls_kernel_spare_layers(table->kernel, number_of(table, file), file->host_path,
				       &file->sites);
}

/* It is watched before it is read. */
static int probe_file(struct rls_layer_probes_table *table, struct rls_layer_probed *file,
		      uint64_t vaddr, uint32_t items_bytes)
{
	int r = find_sites(file->host_path, vaddr, &file->sites);

	if (!r)
		r = rls_kernel_attach_layers(table->kernel, number_of(table, file), file->host_path,
					     &file->sites, items_bytes, file->spared);
	rls_debug("%s: calls of layers at 0x%llx: %s", file->path, (unsigned long long)vaddr,
		  r ? strerror(-r) : "probed");
	if (!r || r == -ENOMEM)
		return r;
	give_up(table, file);
	return -ENOTSUP;
}

static int add_file(struct rls_layer_probes_table *table, const struct rls_file *identity,
		    const char *host_path, const char *path, struct rls_layer_probed **out)
{
	int r = rls_grow(&table->files, &table->room, table->count);

	if (r)
		return r;
	*out = &table->files[table->count];
	**out = (struct rls_layer_probed){
		.identity = identity, .path = strdup(path), .host_path = strdup(host_path)};
	table->count++;
	if (!(*out)->path || !(*out)->host_path)
		return -ENOMEM;
	(*out)->watch = rls_modified_files_watch(table->written_fd, host_path);
	return 0;
}

int rls_layer_probes_add(struct rls_layer_probes_table *table, pid_t pid,
			 const struct rls_mappings *mappings, const struct rls_python *python,
			 const struct rls_object_reader *reader)
{
	uint64_t call = table->table ? find_function(reader, python) : 0;
	_cleanup_free_ char *host_path = NULL;
	struct rls_layer_probed *file;
	struct rls_file *identity;
	int r;

	if (!call)
		return -EAGAIN;
	r = rls_files_locate(table->table, pid, python->mapping, &host_path, &identity);
	if (r)
		return r;
	file = find_file(table, identity);
	if (file)
		return file->refused ? -ENOTSUP : 0;
	r = add_file(table, identity, host_path, python->mapping->path, &file);
	/* What it maps now may not have been noted yet. */
	if (!r)
		file->spared = identity->switches_stacks || rls_stack_switching_among(mappings);
	return r ? r
		 : probe_file(table, file, call - python->load_bias,
			      rls_tuple_items_bytes(reader->layout));
}

/* Why a file's probes are to go, and are gone: NULL: they stay. */
static const char *check_file(const struct rls_layer_probes_table *table,
			      struct rls_layer_probed *file, const int *written, size_t count)
{
	for (size_t i = 0; i < count; i++) {
		if (file->watch < 0 || file->watch != written[i])
			continue;
		rls_kernel_detach_layers(table->kernel, number_of(table, file));
		return "it is written to while it is probed";
	}
	return NULL;
}

int rls_layer_probes_spare(struct rls_layer_probes_table *table,
			   int (*report)(void *context, const char *path, const char *why),
			   void *context)
{
	int r = 0;

	for (size_t i = 0; !r && i < table->count; i++) {
		struct rls_layer_probed *file = &table->files[i];

		if (file->refused || file->spared || !file->identity->switches_stacks ||
		    !spare_file(table, file))
			continue;
		give_up(table, file);
		r = report(context, file->path, "stacks are switched there");
	}
	return r;
}

int rls_layer_probes_check(struct rls_layer_probes_table *table,
			   int (*report)(void *context, const char *path, const char *why),
			   void *context)
{
	int written[WRITTEN_AT_ONCE], r = 0;
	size_t count = rls_modified_files_read(table->written_fd, written, WRITTEN_AT_ONCE);

	for (size_t i = 0; !r && i < table->count; i++) {
		struct rls_layer_probed *file = &table->files[i];
		const char *why = file->refused ? NULL : check_file(table, file, written, count);

		if (!why)
			continue;
		give_up(table, file);
		r = report(context, file->path, why);
	}
	return r;
}
