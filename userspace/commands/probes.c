/* rlscope-bpf probes: what would be probed in a process, without attaching. */
#include <argp.h>
#include <errno.h>
#include <jansson.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "analysis/base/cleanup.h"
#include "analysis/base/search.h"
#include "userspace/base/log.h"
#include "userspace/commands/options/arguments.h"
#include "userspace/commands/options/help.h"
#include "userspace/commands/shared/commands.h"
#include "userspace/commands/shared/print_json.h"
#include "userspace/discover/discover.h"
#include "userspace/elf/elf.h"
#include "userspace/plan/planner.h"

/* --- what there is to print ------------------------------------------------------------ */

/* The plan of each library of the image, in its order. */
struct plans {
	const struct rls_process_image *image;
	struct rls_plan *plans;
};

static int plan_library(const struct rls_library *library, struct rls_plan *plan)
{
	struct rls_elf *elf;
	int r;

	if (!library->function_count)
		return 0;
	r = rls_elf_open(library->host_path, &elf);
	if (r)
		return rls_error_r(r, "cannot read %s: %s", library->path, strerror(-r));
	r = rls_plan_library(library, elf, plan);
	rls_elf_close(elf);
	return r;
}

static int make_plans(const struct rls_process_image *image, struct plans *plans)
{
	plans->image = image;
	plans->plans = calloc(image->library_count + 1, sizeof(*plans->plans));
	if (!plans->plans)
		return -ENOMEM;
	for (size_t i = 0; i < image->library_count; i++) {
		int r = plan_library(image->libraries[i], &plans->plans[i]);

		if (r)
			return r;
	}
	return 0;
}

static void clear_plans(struct plans *plans)
{
	for (size_t i = 0; plans->plans && i < plans->image->library_count; i++)
		rls_plan_clear(&plans->plans[i]);
	free(plans->plans);
}

static const char *kind_name(enum rls_site_kind kind)
{
	static const char *const names[RLS_SITE_KIND_MAX] = {
		[RLS_SITE_ENTER] = "enter",
		[RLS_SITE_ENTER_CALL] = "enter-call",
		[RLS_SITE_LEAVE_RET] = "leave-ret",
		[RLS_SITE_LEAVE_AFTER] = "leave-after",
	};

	return kind < RLS_SITE_KIND_MAX ? names[kind] : "unknown";
}

static const char *exit_name(enum rls_site_exit exit)
{
	switch (exit) {
	case RLS_EXIT_RETURN_PROBE:
		return "return-probe";
	case RLS_EXIT_SITES:
		return "sites";
	case RLS_EXIT_UNSEEN:
		return "stack-pointer";
	case RLS_EXIT_NONE:
		return "none";
	}
	return "unknown";
}

static const struct {
	enum rls_boundary_source source;
	const char *name;
} sources[] = {
	{RLS_SOURCE_SYMBOL, "symbol"},           {RLS_SOURCE_METHOD_FILE, "method-file"},
	{RLS_SOURCE_METHOD_LIVE, "method-live"}, {RLS_SOURCE_SLOT, "slot"},
	{RLS_SOURCE_GETTER, "getter"},           {RLS_SOURCE_CALLBACK, "callback"},
};
#define SOURCE_COUNT (sizeof(sources) / sizeof(sources[0]))

/* A site's name is its function's, the very same pointer. */
static unsigned int sources_of(const struct rls_library *library, const struct rls_site *site)
{
	/* The function at the site's address or the last one before it, and its neighbours. */
	size_t low = rls_first_not(library->function_count, i,
				   library->functions[i].vaddr <= site->vaddr);

	for (size_t i = low; i > 0; i--)
		if (library->functions[i - 1].name == site->name)
			return library->functions[i - 1].sources;
	for (size_t i = low; i < library->function_count; i++)
		if (library->functions[i].name == site->name)
			return library->functions[i].sources;
	return 0;
}

/* --- text ------------------------------------------------------------------------------ */

static void print_sources(unsigned int set)
{
	const char *separator = "  ";

	for (size_t i = 0; i < SOURCE_COUNT; i++) {
		if (!(set & sources[i].source))
			continue;
		printf("%s%s", separator, sources[i].name);
		separator = ",";
	}
	putchar('\n');
}

static void print_library(const struct rls_library *library, const struct rls_plan *plan)
{
	printf("\n%s  %s  %zu functions, %zu sites", library->path, rls_role_name(library->role),
	       library->function_count, plan->count);
	for (int class = 0; class < RLS_SITE_CLASS_MAX; class ++)
		if (plan->class_counts[class])
			printf(", %zu %s", plan->class_counts[class], rls_site_class_name(class));
	putchar('\n');
	for (size_t i = 0; i < plan->count; i++) {
		const struct rls_site *site = &plan->sites[i];

		printf("  0x%-8lx %-11s %-11s %-13s %s", site->file_offset, kind_name(site->kind),
		       rls_site_class_name(site->site_class), exit_name(site->exit), site->name);
		print_sources(sources_of(library, site));
	}
}

static int print_text(const struct plans *plans)
{
	const struct rls_process_image *image = plans->image;
	size_t silent = 0;

	printf("process %d, Python %s%s\n", image->pid, image->python.version,
	       image->python.free_threaded ? " (free-threaded)" : "");
	for (size_t i = 0; i < image->library_count; i++) {
		if (image->libraries[i]->function_count)
			print_library(image->libraries[i], &plans->plans[i]);
		else
			silent++;
	}
	if (silent)
		printf("\nwithout a function that Python calls:\n");
	for (size_t i = 0; i < image->library_count; i++)
		if (!image->libraries[i]->function_count)
			printf("  %s  %s\n", image->libraries[i]->path,
			       rls_role_name(image->libraries[i]->role));
	return 0;
}

/* --- JSON ------------------------------------------------------------------------------ */

static json_t *source_names(unsigned int set)
{
	json_t *names = json_array();

	for (size_t i = 0; i < SOURCE_COUNT; i++)
		if (set & sources[i].source)
			json_array_append_new(names, json_string(sources[i].name));
	return names;
}

static json_t *describe_sites(const struct rls_library *library, const struct rls_plan *plan)
{
	json_t *sites = json_array();

	for (size_t i = 0; i < plan->count; i++) {
		const struct rls_site *site = &plan->sites[i];
		json_t *entry = json_pack(
			"{s:o, s:I, s:s, s:s, s:s, s:o}", "name", rls_json_text(site->name),
			"offset", (json_int_t)site->file_offset, "kind", kind_name(site->kind),
			"class", rls_site_class_name(site->site_class), "exit",
			exit_name(site->exit), "source", source_names(sources_of(library, site)));

		if (json_array_append_new(sites, entry)) {
			json_decref(sites);
			return NULL;
		}
	}
	return sites;
}

static json_t *describe_libraries(const struct plans *plans)
{
	json_t *libraries = json_array();

	for (size_t i = 0; i < plans->image->library_count; i++) {
		const struct rls_library *library = plans->image->libraries[i];
		json_t *entry =
			json_pack("{s:o, s:s, s:I, s:o}", "path", rls_json_text(library->path),
				  "role", rls_role_name(library->role), "functions",
				  (json_int_t)library->function_count, "sites",
				  describe_sites(library, &plans->plans[i]));

		if (json_array_append_new(libraries, entry)) {
			json_decref(libraries);
			return NULL;
		}
	}
	return libraries;
}

static json_t *describe_warnings(const struct rls_process_image *image)
{
	json_t *warnings = json_array();

	for (size_t i = 0; i < image->warning_count; i++)
		json_array_append_new(warnings, rls_json_text(image->warnings[i]));
	return warnings;
}

static int print_json(const struct plans *plans)
{
	json_t *root = json_pack(
		"{s:i, s:s, s:i, s:s, s:o, s:o}", "version", 1, "tool", "rlscope-bpf " RLS_VERSION,
		"pid", plans->image->pid, "python", plans->image->python.version, "libraries",
		describe_libraries(plans), "warnings", describe_warnings(plans->image));

	return rls_print_json(root, 1);
}

static const struct format {
	const char *name;
	int (*print)(const struct plans *plans);
} formats[] = {
	{"text", print_text},
	{"json", print_json},
};

/* --- the command ----------------------------------------------------------------------- */

struct arguments {
	pid_t pid;
	const struct format *format;
	const char *config_path;
	struct rls_roles *roles;
	bool verbose, help;
};

enum { KEY_SIMULATOR = 0x100, KEY_BACKEND, KEY_NATIVE, KEY_CONFIG, KEY_JSON };

static int set_pid(struct arguments *arguments, const char *text)
{
	char *end;
	long pid = strtol(text, &end, 10);

	if (end == text || *end || pid <= 0 || pid > INT32_MAX) {
		rls_error("--pid takes the number of a process, not '%s'", text);
		return EINVAL;
	}
	arguments->pid = pid;
	return 0;
}

static int set_format(struct arguments *arguments, const char *name)
{
	for (size_t i = 0; i < sizeof(formats) / sizeof(formats[0]); i++) {
		if (strcmp(formats[i].name, name))
			continue;
		arguments->format = &formats[i];
		return 0;
	}
	rls_error("--format is text or json, not '%s'", name);
	return EINVAL;
}

static int add_role(struct arguments *arguments, enum rls_role role, const char *pattern)
{
	int r = rls_roles_add(arguments->roles, role, pattern);

	if (r == -EINVAL)
		rls_error("'%s' is not a library pattern: GLOB or GLOB:SYMBOLGLOB", pattern);
	return -r;
}

static error_t parse_option(int key, char *value, struct argp_state *state)
{
	struct arguments *arguments = state->input;

	switch (key) {
	case 'p':
		return set_pid(arguments, value);
	case 'f':
		return set_format(arguments, value);
	case KEY_JSON:
		return set_format(arguments, "json");
	case KEY_SIMULATOR:
		return add_role(arguments, RLS_ROLE_SIMULATOR, value);
	case KEY_BACKEND:
		return add_role(arguments, RLS_ROLE_BACKEND, value);
	case KEY_NATIVE:
		return add_role(arguments, RLS_ROLE_NATIVE, value);
	case KEY_CONFIG:
		arguments->config_path = value;
		return 0;
	case 'v':
		arguments->verbose = true;
		return 0;
	case 'h':
		return rls_help_print(state, &arguments->help);
	case ARGP_KEY_ARG:
		rls_error("probes takes no argument: %s", value);
		return EINVAL;
	default:
		return ARGP_ERR_UNKNOWN;
	}
}

static const struct argp argp = {
	.options =
		(const struct argp_option[]){
			{"pid", 'p', "PID", 0, "The process to examine", 0},
			{"format", 'f', "FORMAT", 0, "text (default) or json", 0},
			{"json", KEY_JSON, NULL, 0, "The same as --format json", 0},
			{"simulator", KEY_SIMULATOR, "GLOB", 0,
			 "Libraries of this name are a simulator; GLOB:SYMBOLGLOB restricts that "
			 "to "
			 "functions",
			 1},
			{"backend", KEY_BACKEND, "GLOB", 0, "The same for an ML backend", 1},
			{"native", KEY_NATIVE, "GLOB", 0, "The same for a library without a role",
			 1},
			{"config", KEY_CONFIG, "FILE", 0, "Read roles from FILE too", 1},
			{"verbose", 'v', NULL, 0, "Print how long each step takes", 2},
			{"help", 'h', NULL, 0, "Print this", 2},
			{0},
		},
	.parser = parse_option,
	.doc = "Lists what would be probed in a process, without attaching.",
};

/* Checks, and says what is odd. */
static int discover(const struct arguments *arguments, struct rls_process_image **out)
{
	struct rls_process_image *image;
	int r = rls_discover_process(arguments->pid, arguments->roles, &image);

	if (r)
		return rls_discover_explain(arguments->pid, r);
	if (!image->python.version[0]) {
		rls_process_image_free(image);
		return rls_error_r(-ENOENT, "process %d runs no Python", arguments->pid);
	}
	for (size_t i = 0; i < image->warning_count; i++)
		rls_warning("%s", image->warnings[i]);
	if (!rls_process_image_known_libraries(image))
		rls_warning("process %d has no library of a known role (yet): name yours with "
			    "--simulator, --backend or --native",
			    arguments->pid);
	*out = image;
	return 0;
}

static int probes_show(const struct arguments *arguments)
{
	struct rls_process_image *image = NULL;
	struct plans plans = {0};
	int r = discover(arguments, &image);

	if (r)
		return r;
	r = make_plans(image, &plans);
	if (!r)
		r = arguments->format->print(&plans);
	if (r == -ENOMEM)
		rls_error("out of memory");
	clear_plans(&plans);
	rls_process_image_free(image);
	return r;
}

static int read_roles(const struct arguments *arguments)
{
	int r = rls_roles_parse_default_files(arguments->roles);

	if (!r && arguments->config_path)
		r = rls_roles_parse_file(arguments->roles, arguments->config_path);
	return r;
}

static int probes_run(struct arguments *arguments, int argc, char **argv)
{
	if (rls_arguments_parse(&argp, argc, argv, 0, arguments))
		return RLS_EXIT_USAGE;
	if (arguments->help)
		return RLS_EXIT_DONE;
	if (!arguments->pid) {
		rls_error("probes needs --pid PID");
		return RLS_EXIT_USAGE;
	}
	rls_log_set_verbose(arguments->verbose);
	return read_roles(arguments) || probes_show(arguments) ? RLS_EXIT_FAILED : RLS_EXIT_DONE;
}

int rls_command_probes(int argc, char **argv)
{
	struct arguments arguments = {.format = &formats[0]};
	int status;

	if (rls_roles_new(&arguments.roles))
		return RLS_EXIT_FAILED;
	status = probes_run(&arguments, argc, argv);
	rls_roles_free(arguments.roles);
	return status;
}
