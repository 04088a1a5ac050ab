/* The monitor's configuration: any text. */
#include <stdlib.h>
#include <string.h>

#include "fuzz.h"
#include "userspace/base/log.h"
#include "userspace/metrics/monitor_config.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct rls_monitor_config config = {0}, sum = {0};
	char *text = malloc(size + 1);
	struct rls_roles *roles;

	rls_log_set_muted(true);
	fuzz_require(text && !rls_roles_new(&roles), "memory");
	memcpy(text, data, size);
	text[size] = '\0';
	if (!rls_monitor_config_parse(text, "fuzz", &config)) {
		uint64_t interval_ns = rls_monitor_config_interval_ns(&config);

		fuzz_require(interval_ns >= 100000000 && interval_ns <= 3600000000000,
			     "the interval");
		fuzz_require(!rls_monitor_config_overlay(&sum, &config),
			     "what was read can be laid over");
		fuzz_require(sum.role_count == config.role_count, "roles are kept");
		fuzz_require(!rls_monitor_config_add_roles(&sum, roles), "roles are good");
	}
	rls_monitor_config_clear(&config);
	rls_monitor_config_clear(&sum);
	rls_roles_free(roles);
	free(text);
	return 0;
}
