#include "userspace/commands/in_vivo.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "analysis/base/cleanup.h"
#include "userspace/attach/kernel/kernel.h"
#include "userspace/base/log.h"
#include "userspace/commands/shared/recording.h"
#include "userspace/record/targets/process_info.h"

static int read_command(pid_t pid, char **out)
{
	struct rls_process_info info;
	int r = rls_process_info_read(pid, &info);

	if (r)
		return rls_error_r(r, "there is no process %d", pid);
	*out = strdup(info.cmdline);
	rls_process_info_clear(&info);
	return *out ? 0 : -ENOMEM;
}

static int in_vivo_record(struct rls_record_options *options, pid_t pid, struct rls_in_vivo *out)
{
	const struct rls_recorder_hooks hooks = {0};
	const struct rls_selection nobody = {0};
	struct rls_recorder *recorder;
	enum rls_stop why;
	int found = -ENODATA;
	int r = rls_recording_open(options, &nobody, pid, NULL, &recorder);

	if (r)
		return r;
	r = rls_recorder_add(recorder, pid);
	if (!r)
		r = rls_recorder_run(recorder, &hooks, &why);
	if (!r) {
		out->cuda_count = rls_recorder_cuda_costs(recorder, out->cuda, RLS_CUDA_COSTS_MAX,
							  &out->bridged);
		out->way = rls_kernel_way(rls_recorder_kernel(recorder));
		found = rls_recorder_in_vivo(recorder, &out->delta, &out->calibration);
		out->compared = !found;
		if (!found)
			out->operation_count = rls_recorder_operation_costs(recorder, &out->delta,
									    out->operations);
		r = rls_recorder_finish(recorder);
	}
	if (!r && why == RLS_STOP_FAILED)
		r = rls_error_r(-EIO, "the measurement could not continue");
	if (!r && found == -ENODATA && out->cuda_count)
		found = 0;
	if (!r && found == -ENODATA)
		rls_error("too few pieces of its work could be compared: its operations "
			  "(annotations, ranges) must change "
			  "several times a second; else give it a longer --duration");
	if (!r)
		r = found;
	rls_recorder_free(recorder);
	return r;
}

int rls_in_vivo_measure(pid_t pid, uint64_t duration_ns, struct rls_in_vivo *out)
{
	char folder[] = "/tmp/rlscope-calibrate.XXXXXX";
	_cleanup_free_ char *words = NULL;
	struct rls_record_options options;
	int r = read_command(pid, &words);

	if (!r)
		r = rls_record_options_init(&options);
	if (r)
		return r;
	options.duration_ns = duration_ns;
	options.budget_percent = -1;
	options.sample_hz = 0;
	options.alternate = true;
	options.verbose = rls_log_verbose();
	r = rls_record_options_finish(&options);
	if (!r && !mkdtemp(folder))
		r = rls_error_r(-errno, "cannot make a folder in /tmp: %s", strerror(errno));
	if (!r && asprintf(&options.trace_path, "%s/trace", folder) < 0) {
		options.trace_path = NULL;
		r = -ENOMEM;
	}
	if (!r) {
		r = in_vivo_record(&options, pid, out);
		unlink(options.trace_path);
		rmdir(folder);
	}
	rls_record_options_clear(&options);
	if (!r) {
		out->command = words;
		words = NULL;
	}
	return r;
}
