#include "userspace/machine_code/site.h"

const char *rls_site_class_name(enum rls_site_class site_class)
{
	switch (site_class) {
	case RLS_SITE_NOP5:
		return "nop5";
	case RLS_SITE_EMULATED:
		return "emulated";
	case RLS_SITE_SINGLE_STEP:
		return "single-step";
	default:
		return "unknown";
	}
}
