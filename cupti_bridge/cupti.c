#include "cupti_bridge/cupti.h"

#include <dlfcn.h>
#include <errno.h>
#include <link.h>
#include <stdio.h>
#include <string.h>

#define VERSION_LEAST 18 /* 11.8 */
#define DRIVER "libcuda.so.1"

bool rls_driver_is_loaded(void)
{
	void *driver = dlopen(DRIVER, RTLD_NOLOAD | RTLD_LAZY);

	if (driver)
		dlclose(driver);
	return driver != NULL;
}

/* In thousands: 12020 is CUDA 12.2. 0: not known. */
static int driver_version(void)
{
	void *driver = dlopen(DRIVER, RTLD_NOLOAD | RTLD_LAZY);
	int (*get)(int *) = driver ? (int (*)(int *))dlsym(driver, "cuDriverGetVersion") : NULL;
	int version = 0;

	if (get && get(&version))
		version = 0;
	if (driver)
		dlclose(driver);
	return version;
}

/* --- what is mapped -------------------------------------------------------------------- */

struct mapped {
	char cupti[RLS_CUPTI_PATH_BYTES];
	char cudart[RLS_CUPTI_PATH_BYTES];
	char wheels[RLS_CUPTI_PATH_BYTES]; /* …/nvidia, under which PyPI's packages put theirs */
};

static void cupti_store(char *to, const char *path, size_t length)
{
	if (*to || length >= RLS_CUPTI_PATH_BYTES)
		return;
	memcpy(to, path, length);
	to[length] = '\0';
}

static bool is_called(const char *path, const char *prefix)
{
	const char *slash = strrchr(path, '/');

	return !strncmp(slash ? slash + 1 : path, prefix, strlen(prefix));
}

static int find_mapped(struct dl_phdr_info *info, size_t size, void *context)
{
	struct mapped *mapped = context;
	const char *path = info->dlpi_name, *wheels = path ? strstr(path, "/nvidia/") : NULL;

	if (!path || !*path)
		return 0;
	if (is_called(path, "libcupti.so"))
		cupti_store(mapped->cupti, path, strlen(path));
	if (is_called(path, "libcudart.so"))
		cupti_store(mapped->cudart, path, strlen(path));
	if (wheels)
		cupti_store(mapped->wheels, path, wheels + strlen("/nvidia") - path);
	return 0;
}

/* --- taking one --------------------------------------------------------------------------- */

static int cupti_resolve(void *library, struct rls_cupti *cupti)
{
	const struct {
		void *to;
		const char *name;
		bool is_optional;
	} functions[] = {
		{&cupti->get_version, "cuptiGetVersion", false},
		{&cupti->get_timestamp, "cuptiGetTimestamp", false},
		{&cupti->subscribe, "cuptiSubscribe", false},
		{&cupti->unsubscribe, "cuptiUnsubscribe", false},
		{&cupti->set_thread_id_type, "cuptiSetThreadIdType", false},
		{&cupti->get_thread_id_type, "cuptiGetThreadIdType", false},
		{&cupti->register_clock, "cuptiActivityRegisterTimestampCallback", false},
		{&cupti->register_buffers, "cuptiActivityRegisterCallbacks", false},
		{&cupti->enable, "cuptiActivityEnable", false},
		{&cupti->disable, "cuptiActivityDisable", false},
		{&cupti->flush_all, "cuptiActivityFlushAll", false},
		{&cupti->get_dropped, "cuptiActivityGetNumDroppedRecords", false},
		{&cupti->next_record, "cuptiActivityGetNextRecord", false},
		{&cupti->enable_runtime_call, "cuptiActivityEnableRuntimeApi", true},
		{&cupti->enable_driver_call, "cuptiActivityEnableDriverApi", true},
		{&cupti->enable_callback, "cuptiEnableCallback", true},
		{&cupti->finalize, "cuptiFinalize", true},
	};

	for (size_t i = 0; i < sizeof(functions) / sizeof(*functions); i++) {
		void *address = dlsym(library, functions[i].name);

		if (!address && !functions[i].is_optional)
			return -ENOTSUP;
		memcpy(functions[i].to, &address, sizeof(address));
	}
	return 0;
}

/* -ENOENT: not there, or not to be loaded. */
static int cupti_accept(const char *path, int flags, struct rls_cupti *cupti)
{
	struct rls_cupti found = {0};
	void *library = dlopen(path, RTLD_NOW | RTLD_LOCAL | flags);
	int error = library ? cupti_resolve(library, &found) : -ENOENT;

	if (!error && (found.get_version(&found.version) || found.version < VERSION_LEAST))
		error = -ENOTSUP;
	cupti_store(found.path, path, strlen(path));
	if (!error)
		*cupti = found;
	else if (library)
		dlclose(library);
	return error;
}

/* --- where one may be ------------------------------------------------------------------------ */

struct search {
	const struct mapped *mapped;
	struct rls_cupti *cupti;
	const char *number; /* of the SONAME: 11.8, 12, 13 */
	const char *version; /* of the wheels' folder: cu13; "" has none */
};

static int try_in(const struct search *search, const char *folder, int folder_length,
		  const char *below)
{
	char path[RLS_CUPTI_PATH_BYTES];
	int length = snprintf(path, sizeof(path), "%.*s%slibcupti.so.%s", folder_length, folder,
			      below, search->number);

	return length > 0 && (size_t)length < sizeof(path) ? cupti_accept(path, 0, search->cupti)
							   : -ENOENT;
}

/* Beside libcudart, as the toolkit and Conda have it; in the folder of its own that a wheel or
 * the toolkit gives it; wherever the loader looks; where the toolkit usually is. */
static int try_all(const struct search *search)
{
	const struct mapped *mapped = search->mapped;
	const char *slash = strrchr(mapped->cudart, '/');
	int error = -ENOENT;

	if (slash) {
		int length = slash + 1 - mapped->cudart;

		error = try_in(search, mapped->cudart, length, "");
		if (error)
			error = try_in(search, mapped->cudart, length, "../../cuda_cupti/lib/");
		if (error)
			error = try_in(search, mapped->cudart, length, "../extras/CUPTI/lib64/");
	}
	if (error && *mapped->wheels)
		error = try_in(search, mapped->wheels, RLS_CUPTI_PATH_BYTES, search->version);
	if (error)
		error = try_in(search, "", 0, "");
	if (error)
		error = try_in(search, "", 0, "/usr/local/cuda/extras/CUPTI/lib64/");
	return error;
}

/* The runtime's own version where it is mapped, else the newest that the driver can do: an
 * older CUPTI works with a newer driver, a newer one does not with an older driver. */
static bool may_be(const struct mapped *mapped, int driver, int major)
{
	int runtime = 0;
	const char *number = strstr(mapped->cudart, "libcudart.so.");

	if (number && sscanf(number, "libcudart.so.%d", &runtime) == 1)
		return runtime == major;
	return !driver || driver / 1000 >= major;
}

static int find_unmapped(const struct mapped *mapped, struct rls_cupti *cupti)
{
	static const struct {
		int major;
		const char *number, *version;
	} versions[] = {
		{13, "13", "/cu13/lib/"},
		{12, "12", "/cuda_cupti/lib/"},
		{11, "11.8", "/cuda_cupti/lib/"},
	};
	int driver = driver_version(), error = -ENOENT;

	for (size_t i = 0; error && i < sizeof(versions) / sizeof(*versions); i++) {
		struct search search = {mapped, cupti, versions[i].number, versions[i].version};

		if (may_be(mapped, driver, versions[i].major))
			error = try_all(&search);
	}
	return error;
}

int rls_cupti_find(struct rls_cupti *cupti)
{
	struct mapped mapped = {0};
	int error;

	dl_iterate_phdr(find_mapped, &mapped);
	if (!*mapped.cupti)
		return find_unmapped(&mapped, cupti);
	error = cupti_accept(mapped.cupti, RTLD_NOLOAD, cupti);
	if (error)
		cupti_store(cupti->path, mapped.cupti, strlen(mapped.cupti));
	return error ? -ENOTSUP : 0;
}
