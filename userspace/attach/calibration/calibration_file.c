#include "userspace/attach/calibration/calibration_file.h"

#include <errno.h>
#include <fcntl.h>
#include <jansson.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/utsname.h>
#include <unistd.h>

#include "analysis/base/cleanup.h"

/* 1: hits were found a tenth too cheap; 2: single steps by half, workloads without density; 3: events through the kernel's
 * ring buffers; 4: cookies through the helper; 5: workloads without the calibration that they are shares of; 6: of any model of CPU */
#define VERSION 7
#define FILE_BYTES_MAX (2L << 20)
#define FIGURE_NS_MAX 1e9
#define FACTOR_MAX 100.0
#define UNTIL_S_MAX 1e10

static void put_json(json_t **json)
{
	json_decref(*json);
}

#define _cleanup_json_ __attribute__((cleanup(put_json)))

void rls_calibration_file_clear(struct rls_calibration_file *file)
{
	free(file->workloads);
	*file = (struct rls_calibration_file){0};
}

const char *rls_calibration_source_name(enum rls_calibration_source source)
{
	static const char *const names[RLS_CALIBRATION_SOURCES] = {
		[RLS_CALIBRATED_BY_RECORDING] = "recording",
		[RLS_CALIBRATED_BY_COMMAND] = "calibrate",
		[RLS_CALIBRATED_IN_JOB] = "job",
		[RLS_CALIBRATED_NOT] = "default",
	};

	return names[source];
}

/* As the first CPU has it: a virtual machine that moves to another host keeps its boot. */
static void read_cpu_model(char *out, size_t room)
{
	_cleanup_fclose_ FILE *file = fopen("/proc/cpuinfo", "re");
	char line[256];

	out[0] = '\0';
	while (file && fgets(line, sizeof(line), file)) {
		const char *colon = strchr(line, ':');

		if (strncmp(line, "model name", strlen("model name")) || !colon)
			continue;
		snprintf(out, room, "%s", colon + 1 + strspn(colon + 1, " \t"));
		out[strcspn(out, "\n")] = '\0';
		return;
	}
}

int rls_calibration_scope_init(struct rls_calibration_scope *scope, enum rls_attach_way way)
{
	_cleanup_fclose_ FILE *file = fopen("/proc/sys/kernel/random/boot_id", "re");
	struct utsname name;

	if (!file || !fgets(scope->boot, sizeof(scope->boot), file))
		return file ? -EIO : -errno;
	scope->boot[strcspn(scope->boot, "\n")] = '\0';
	uname(&name);
	snprintf(scope->kernel, sizeof(scope->kernel), "%s", name.release);
	read_cpu_model(scope->cpu, sizeof(scope->cpu));
	scope->way = way == RLS_ATTACH_MULTI ? "multi" : "perf";
	return 0;
}

/* ---- parsing ---- */

static bool is_between(double value, double least, double most)
{
	return isfinite(value) && value >= least && value <= most;
}

/* A member that is a number between 0 and most. */
static int take_number(const json_t *object, const char *name, double most, double *out)
{
	const json_t *number = json_object_get(object, name);

	if (!json_is_number(number) || !is_between(json_number_value(number), 0, most))
		return -EINVAL;
	*out = json_number_value(number);
	return 0;
}

/* One that need not be there: then *out stays. */
static int take_number_if_any(const json_t *object, const char *name, double most, double *out)
{
	return json_object_get(object, name) ? take_number(object, name, most, out) : 0;
}

/* A member that is text, with room for its end. */
static int take_text(const json_t *object, const char *name, char *out, size_t room)
{
	const char *text = json_string_value(json_object_get(object, name));

	if (!text || strlen(text) >= room)
		return -EINVAL;
	memcpy(out, text, strlen(text) + 1);
	return 0;
}

/* Of an array of no more than so many; those that versions wrote which knew of none have none. */
static int take_count(const json_t *array, size_t most, size_t *out)
{
	if (array && (!json_is_array(array) || json_array_size(array) > most))
		return -EINVAL;
	*out = json_array_size(array);
	return 0;
}

static int take_path(const json_t *paths, const char *name, struct rls_calibrated *out)
{
	const json_t *path = json_object_get(paths, name);
	int r = take_number(path, "ns", FIGURE_NS_MAX, &out->value_ns);

	if (!r)
		r = take_number(path, "error_ns", FIGURE_NS_MAX, &out->error_ns);
	if (!r)
		r = take_number(path, "hot_ns", FIGURE_NS_MAX, &out->hot_ns);
	return r ? r : take_number(path, "hot_error_ns", FIGURE_NS_MAX, &out->hot_error_ns);
}

static int take_calibration(const json_t *object, struct rls_calibration *out)
{
	const json_t *paths = json_object_get(object, "paths");
	int r = take_number(object, "inside_ns", FIGURE_NS_MAX, &out->inside_ns);

	for (int path = 0; !r && path < RLS_PATH_MAX; path++)
		r = take_path(paths, rls_path_name(path), &out->paths[path]);
	return r;
}

static int take_cuda_cost(const json_t *object, struct rls_cuda_cost *out)
{
	int r = take_text(object, "name", out->name, sizeof(out->name));

	if (!r && !*out->name)
		r = -EINVAL;
	if (!r)
		r = take_number(object, "ns", FIGURE_NS_MAX, &out->ns);
	return r ? r : take_number(object, "error_ns", FIGURE_NS_MAX, &out->error_ns);
}

static int take_cuda_costs(const json_t *array, struct rls_workload *out)
{
	int r = take_count(array, RLS_CUDA_COSTS_MAX, &out->cuda_count);

	for (size_t i = 0; !r && i < out->cuda_count; i++)
		r = take_cuda_cost(json_array_get(array, i), &out->cuda[i]);
	return r;
}

static int take_operation_cost(const json_t *object, struct rls_operation_cost *out)
{
	int r = take_text(object, "operation", out->operation, sizeof(out->operation));

	if (!r)
		r = take_number(object, "factor", FACTOR_MAX, &out->factor);
	if (!r)
		r = take_number(object, "error", FACTOR_MAX, &out->error);
	return !r && !(out->factor > 0) ? -EINVAL : r;
}

static int take_operation_costs(const json_t *array, struct rls_workload *out)
{
	int r = take_count(array, RLS_OPERATION_COSTS_MAX, &out->operation_count);

	for (size_t i = 0; !r && i < out->operation_count; i++)
		r = take_operation_cost(json_array_get(array, i), &out->operations[i]);
	return r;
}

static int take_workload(const json_t *object, struct rls_workload *out)
{
	int r = take_text(object, "command", out->command, sizeof(out->command));

	if (!r)
		r = take_number(object, "factor", FACTOR_MAX, &out->factor);
	if (!r)
		r = take_number(object, "error", FACTOR_MAX, &out->error);
	if (!r && json_object_get(object, "paths")) /* else the machine's */
		r = take_calibration(object, &out->calibration);
	if (!r)
		r = take_cuda_costs(json_object_get(object, "cuda"), out);
	if (!r)
		r = take_operation_costs(json_object_get(object, "operations"), out);
	return r;
}

static int take_workloads(const json_t *array, struct rls_calibration_file *out)
{
	size_t count = json_array_size(array);

	if (!json_is_array(array) || count > RLS_WORKLOADS_MAX)
		return -EINVAL;
	out->workloads = calloc(count ? count : 1, sizeof(*out->workloads));
	if (!out->workloads)
		return -ENOMEM;
	for (size_t i = 0; i < count; i++) {
		int r;

		out->workloads[i].calibration = out->calibration;
		r = take_workload(json_array_get(array, i), &out->workloads[i]);
		if (r)
			return r;
	}
	out->workload_count = count;
	return 0;
}

static bool calibration_file_matches(const json_t *root, const char *name, const char *text)
{
	const char *said = json_string_value(json_object_get(root, name));

	return said && !strcmp(said, text);
}

int rls_calibration_parse(const char *text, size_t length,
			  const struct rls_calibration_scope *scope,
			  struct rls_calibration_file *out)
{
	_cleanup_json_ json_t *root = json_loadb(text, length, JSON_REJECT_DUPLICATES, NULL);
	struct rls_calibration_file file = {0};
	int r;

	if (!json_is_integer(json_object_get(root, "version")))
		return -EINVAL;
	if (json_integer_value(json_object_get(root, "version")) != VERSION ||
	    !calibration_file_matches(root, "boot", scope->boot) ||
	    !calibration_file_matches(root, "kernel", scope->kernel) ||
	    !calibration_file_matches(root, "cpu", scope->cpu) ||
	    !calibration_file_matches(root, "way", scope->way))
		return -ESTALE;
	if (calibration_file_matches(root, "source",
				     rls_calibration_source_name(RLS_CALIBRATED_BY_COMMAND)))
		file.source = RLS_CALIBRATED_BY_COMMAND;
	r = take_calibration(root, &file.calibration);
	if (!r)
		r = take_number_if_any(root, "until_s", UNTIL_S_MAX, &file.until_s);
	if (!r)
		r = take_workloads(json_object_get(root, "workloads"), &file);
	if (r) {
		rls_calibration_file_clear(&file);
		return r;
	}
	*out = file;
	return 0;
}

/* ---- formatting ---- */

static json_t *describe_path(const struct rls_calibrated *path)
{
	return json_pack("{s:f, s:f, s:f, s:f}", "ns", path->value_ns, "error_ns", path->error_ns,
			 "hot_ns", path->hot_ns, "hot_error_ns", path->hot_error_ns);
}

json_t *rls_cuda_costs_describe(const struct rls_cuda_cost *costs, size_t count)
{
	json_t *array = json_array();

	for (size_t i = 0; i < count; i++)
		json_array_append_new(array,
				      json_pack("{s:s, s:f, s:f}", "name", costs[i].name, "ns",
						costs[i].ns, "error_ns", costs[i].error_ns));
	return array;
}

json_t *rls_operation_costs_describe(const struct rls_operation_cost *costs, size_t count)
{
	json_t *array = json_array();

	for (size_t i = 0; i < count; i++)
		json_array_append_new(array, json_pack("{s:s, s:f, s:f}", "operation",
						       costs[i].operation, "factor",
						       costs[i].factor, "error", costs[i].error));
	return array;
}

static json_t *describe_paths(const struct rls_calibration *calibration)
{
	json_t *paths = json_object();

	for (int path = 0; path < RLS_PATH_MAX; path++)
		json_object_set_new(paths, rls_path_name(path),
				    describe_path(&calibration->paths[path]));
	return paths;
}

static json_t *describe_workload(const struct rls_workload *workload)
{
	return json_pack(
		"{s:s, s:f, s:f, s:f, s:o, s:o, s:o}", "command", workload->command, "factor",
		workload->factor, "error", workload->error, "inside_ns",
		workload->calibration.inside_ns, "paths", describe_paths(&workload->calibration),
		"cuda", rls_cuda_costs_describe(workload->cuda, workload->cuda_count), "operations",
		rls_operation_costs_describe(workload->operations, workload->operation_count));
}

int rls_calibration_format(const struct rls_calibration_file *file,
			   const struct rls_calibration_scope *scope, char **text)
{
	_cleanup_json_ json_t *root =
		json_pack("{s:i, s:s, s:s, s:s, s:s, s:s, s:f, s:f, s:o, s:[]}", "version", VERSION,
			  "boot", scope->boot, "kernel", scope->kernel, "cpu", scope->cpu, "way",
			  scope->way, "source", rls_calibration_source_name(file->source),
			  "until_s", file->until_s, "inside_ns", file->calibration.inside_ns,
			  "paths", describe_paths(&file->calibration), "workloads");
	json_t *workloads = json_object_get(root, "workloads");
	int failed = 0;

	for (size_t i = 0; i < file->workload_count; i++)
		failed |= json_array_append_new(workloads, describe_workload(&file->workloads[i]));
	*text = failed ? NULL : json_dumps(root, JSON_INDENT(1));
	return *text ? 0 : -ENOMEM;
}

/* ---- the file ---- */

static bool is_ours(const struct stat *status)
{
	return (status->st_uid == 0 || status->st_uid == geteuid()) &&
	       !(status->st_mode & (S_IWGRP | S_IWOTH));
}

/* The folder holds the file's name: who can write it can put another file there. */
static int open_folder(const char *path, bool make)
{
	const char *slash = strrchr(path, '/');
	_cleanup_free_ char *folder =
		slash && slash > path ? strndup(path, (size_t)(slash - path)) : NULL;
	_cleanup_close_ int fd = -1;
	struct stat status;

	if (!folder)
		return -EINVAL;
	if (make && mkdir(folder, 0755) && errno != EEXIST)
		return -errno;
	fd = open(folder, O_PATH | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	if (fd < 0 || fstat(fd, &status))
		return -errno;
	if (!is_ours(&status))
		return -EPERM;
	return rls_take_fd(fd);
}

static int read_all(int fd, char *text, size_t size)
{
	size_t filled = 0;

	while (filled < size) {
		ssize_t got = read(fd, text + filled, size - filled);

		if (got < 0)
			return -errno;
		if (!got)
			return -EIO;
		filled += (size_t)got;
	}
	return 0;
}

int rls_calibration_load(const char *path, const struct rls_calibration_scope *scope,
			 struct rls_calibration_file *out)
{
	_cleanup_close_ int folder = open_folder(path, false);
	_cleanup_close_ int fd = -1;
	_cleanup_free_ char *text = NULL;
	struct stat status;
	int r;

	if (folder < 0)
		return folder;
	fd = openat(folder, strrchr(path, '/') + 1, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
	if (fd < 0 || fstat(fd, &status))
		return -errno;
	if (!S_ISREG(status.st_mode) || !is_ours(&status))
		return -EPERM;
	if (status.st_size > FILE_BYTES_MAX)
		return -EINVAL;
	text = malloc((size_t)status.st_size + 1);
	if (!text)
		return -ENOMEM;
	r = read_all(fd, text, (size_t)status.st_size);
	return r ? r : rls_calibration_parse(text, (size_t)status.st_size, scope, out);
}

static int write_all(int fd, const char *text, size_t size)
{
	while (size) {
		ssize_t written = write(fd, text, size);

		if (written < 0)
			return -errno;
		text += written;
		size -= (size_t)written;
	}
	return 0;
}

/* Two recorders may save at the same time: each its own new file, the last one stays. */
static int write_new(int folder, const char *name, const char *text)
{
	_cleanup_free_ char *fresh = NULL;
	_cleanup_close_ int fd = -1;
	int r;

	if (asprintf(&fresh, "%s.%d", name, getpid()) < 0)
		return -ENOMEM;
	unlinkat(folder, fresh, 0);
	fd = openat(folder, fresh, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0644);
	if (fd < 0)
		return -errno;
	r = write_all(fd, text, strlen(text));
	if (!r && renameat(folder, fresh, folder, name))
		r = -errno;
	if (r)
		unlinkat(folder, fresh, 0);
	return r;
}

int rls_calibration_save(const char *path, const struct rls_calibration_scope *scope,
			 const struct rls_calibration_file *file)
{
	_cleanup_close_ int folder = open_folder(path, true);
	_cleanup_free_ char *text = NULL;
	int r;

	if (folder < 0)
		return folder;
	r = rls_calibration_format(file, scope, &text);
	return r ? r : write_new(folder, strrchr(path, '/') + 1, text);
}

/* ---- workloads ---- */

double rls_workload_rescale(const struct rls_workload *workload, double factor,
			    const struct rls_calibration *calibration)
{
	double own_ns = rls_calibration_mean_hit(&workload->calibration).value_ns;
	double other_ns = rls_calibration_mean_hit(calibration).value_ns;

	return own_ns > 0 && other_ns > 0 ? factor * own_ns / other_ns : factor;
}

struct rls_workload *rls_calibration_workload(const struct rls_calibration_file *file,
					      const char *command)
{
	for (size_t i = 0; i < file->workload_count; i++) {
		if (!strcmp(file->workloads[i].command, command))
			return &file->workloads[i];
	}
	return NULL;
}

int rls_calibration_add_workload(struct rls_calibration_file *file,
				 const struct rls_workload *workload)
{
	struct rls_workload *grown = calloc(file->workload_count + 1, sizeof(*grown));
	size_t count = 1;

	if (!grown)
		return -ENOMEM;
	grown[0] = *workload;
	for (size_t i = 0; i < file->workload_count && count < RLS_WORKLOADS_MAX; i++) {
		if (strcmp(file->workloads[i].command, workload->command))
			grown[count++] = file->workloads[i];
	}
	free(file->workloads);
	file->workloads = grown;
	file->workload_count = count;
	return 0;
}
