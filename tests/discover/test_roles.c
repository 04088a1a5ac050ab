#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "userspace/discover/roles/roles.h"

static int make_roles(void **state)
{
	return rls_roles_new((struct rls_roles **)state);
}

static int free_roles(void **state)
{
	rls_roles_free(*state);
	return 0;
}

static enum rls_role role_of(const struct rls_roles *roles, const char *path)
{
	struct rls_role_match match;

	return rls_roles_match(roles, path, &match) ? match.role : RLS_ROLE_NONE;
}

static void the_table_knows_real_paths(void **state)
{
	static const struct {
		const char *path;
		enum rls_role role;
	} cases[] = {
		{"/v/site-packages/torch/lib/libtorch_python.so", RLS_ROLE_BACKEND},
		{"/usr/lib/x86_64-linux-gnu/libtorch_python.so.1.13", RLS_ROLE_BACKEND},
		{"/v/site-packages/torch/_C.cpython-311-x86_64-linux-gnu.so", RLS_ROLE_BACKEND},
		{"/v/site-packages/torch/lib/libtorch_cpu.so", RLS_ROLE_BACKEND},
		{"/v/tensorflow/python/_pywrap_tensorflow_internal.so", RLS_ROLE_BACKEND},
		{"/v/jaxlib/xla_extension.so", RLS_ROLE_BACKEND},
		{"/v/mujoco/_functions.cpython-311-x86_64-linux-gnu.so", RLS_ROLE_SIMULATOR},
		{"/v/mujoco/libmujoco.so.3.2.0", RLS_ROLE_SIMULATOR},
		{"/v/ale_py/_ale_py.cpython-310-x86_64-linux-gnu.so", RLS_ROLE_SIMULATOR},
		{"/v/Box2D/_Box2D.cpython-39-x86_64-linux-gnu.so", RLS_ROLE_SIMULATOR},
		{"/v/pybullet.cpython-39-x86_64-linux-gnu.so", RLS_ROLE_SIMULATOR},
		{"/v/procgen/data/prebuilt/libenv.so", RLS_ROLE_SIMULATOR},
		{"/v/nvidia/cuda_runtime/lib/libcudart.so.12", RLS_ROLE_CUDA},
		{"/usr/lib/x86_64-linux-gnu/libcuda.so.550.54.14", RLS_ROLE_CUDA},
		{"/usr/lib/libpython3.11.so.1.0", RLS_ROLE_PYTHON},
		{"/v/jaxlib/libjax_common.so", RLS_ROLE_BACKEND},
		{"/v/jaxlib/_jax.so", RLS_ROLE_BACKEND},
		{"/tmp/torchinductor_u/qd/cqd2.main.so", RLS_ROLE_BACKEND},
		{"/moved/cache/qd/cqd2.main.so", RLS_ROLE_BACKEND},
		{"/v/tensorflow/python/lib_pywrap_tensorflow_common.so", RLS_ROLE_BACKEND},
		{"/v/onnxruntime/capi/onnxruntime_pybind11_state.cpython-311-x86_64-linux-gnu.so",
		 RLS_ROLE_BACKEND},
		{"/v/cupy/_core/core.cpython-311-x86_64-linux-gnu.so", RLS_ROLE_BACKEND},
		{"/v/triton/_C/libtriton.so", RLS_ROLE_BACKEND},
		{"/v/xformers/_C.so", RLS_ROLE_BACKEND},
		{"/v/vllm/_C_stable_libtorch.abi3.so", RLS_ROLE_BACKEND},
		{"/v/envpool/mujoco/mujoco_gym_envpool.so", RLS_ROLE_SIMULATOR},
		{"/v/pyspiel.so", RLS_ROLE_SIMULATOR},
		{"/v/mujoco/libmujoco.so.4.0.1", RLS_ROLE_SIMULATOR},
		{"/memfd:nle.so", RLS_ROLE_SIMULATOR},
		{"/memfd:libjax_common.so", RLS_ROLE_BACKEND},
		{"/memfd:/v/jaxlib/_jax.so", RLS_ROLE_BACKEND},
		{"/memfd:", RLS_ROLE_NONE},
		{"/v/jaxlib/libjax_common.so.1", RLS_ROLE_BACKEND},
		{"/v/vizdoom/vizdoom", RLS_ROLE_SIMULATOR},
		{"/v/stable_retro/cores/snes9x_libretro.so", RLS_ROLE_SIMULATOR},
		{"/v/ale_py.libs/libcudart-09529672.so.12.6.77", RLS_ROLE_CUDA},
		{"/v/cv2/cv2.abi3.so", RLS_ROLE_NATIVE},
		{"/v/tokenizers/tokenizers.abi3.so", RLS_ROLE_NATIVE},
		{"/v/_polars_runtime_32/_polars_runtime.abi3.so", RLS_ROLE_NATIVE},
		{"/v/pyarrow/_compute.cpython-311-x86_64-linux-gnu.so", RLS_ROLE_NATIVE},
		{"/v/pyarrow/libarrow_compute.so.2600", RLS_ROLE_NATIVE},
		{"/v/numba/_dispatcher.cpython-311-x86_64-linux-gnu.so", RLS_ROLE_NATIVE},
		{"/v/xgboost/lib/libxgboost.so", RLS_ROLE_NATIVE},
		{"/v/lightgbm/lib/lib_lightgbm.so", RLS_ROLE_NATIVE},
		{"/v/pandas/_libs/algos.cpython-311-x86_64-linux-gnu.so", RLS_ROLE_NONE},
		{"/v/sentencepiece/_sentencepiece.cpython-311-x86_64-linux-gnu.so", RLS_ROLE_NONE},
		{"/v/numpy/_core/_multiarray_umath.cpython-311-x86_64-linux-gnu.so", RLS_ROLE_NONE},
		{"/usr/lib/x86_64-linux-gnu/libc.so.6", RLS_ROLE_NONE},
	};

	for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++)
		if (role_of(*state, cases[i].path) != cases[i].role)
			fail_msg("%s is %s", cases[i].path,
				 rls_role_name(role_of(*state, cases[i].path)));
}

/* A path that the glob matches: "x" for each "*", the first of each "[...]". */
static void make_sample(const char *glob, char *out)
{
	out += sprintf(out, "/v/");
	for (; *glob; glob++) {
		if (*glob == '[') {
			*out++ = glob[1];
			glob = strchr(glob, ']');
		} else {
			*out++ = *glob == '*' ? 'x' : *glob;
		}
	}
	*out = '\0';
}

static void no_rule_hides_a_later_one(void **state)
{
	for (const struct rls_role_rule *rule = rls_role_table; rule->file_glob; rule++) {
		struct rls_role_match match;
		char path[256];

		make_sample(rule->file_glob, path);
		if (!rls_roles_match(*state, path, &match))
			fail_msg("nothing matches %s", path);
		if (match.rules[0] != rule)
			fail_msg("%s is hidden by %s", rule->file_glob, match.rules[0]->file_glob);
	}
}

static void what_is_behind_a_binding_has_nothing_to_take(void **state)
{
	struct rls_role_match match;

	assert_true(rls_roles_match(*state, "/v/torch/lib/libtorch_cpu.so", &match));
	assert_false(rls_role_match_takes_methods(&match));
	assert_false(rls_role_match_takes_exports(&match));
	assert_true(rls_roles_match(*state, "/v/torch/lib/libtorch_python.so", &match));
	assert_true(rls_role_match_takes_methods(&match));
}

/* They have no methods of their own. */
static void what_a_thin_module_passes_on_to_has_the_methods(void **state)
{
	struct rls_role_match match;

	assert_true(rls_roles_match(*state, "/v/jaxlib/libjax_common.so", &match));
	assert_true(rls_role_match_takes_methods(&match));
	assert_true(rls_role_match_takes_callbacks(&match));
}

static void only_outer_exports_of_a_plain_library(void **state)
{
	struct rls_role_match match;

	assert_true(rls_roles_match(*state, "/v/mujoco/libmujoco.so.3", &match));
	assert_true(rls_role_match_wants_export(&match, "mj_step"));
	assert_false(rls_role_match_wants_export(&match, "mju_dot3"));
	assert_true(rls_roles_match(*state, "/v/procgen/data/prebuilt/libenv.so", &match));
	assert_true(rls_role_match_wants_export(&match, "libenv_act"));
	assert_true(rls_roles_match(*state, "/v/libcudart.so.12", &match));
	assert_true(rls_role_match_wants_export(&match, "cudaLaunchKernelExC"));
	assert_false(rls_role_match_wants_export(&match, "__cudaRegisterFatBinary"));
	assert_true(rls_roles_match(*state, "/v/lightgbm/lib/lib_lightgbm.so", &match));
	assert_true(rls_role_match_wants_export(&match, "LGBM_BoosterUpdateOneIter"));
	assert_false(rls_role_match_wants_export(&match, "omp_get_max_threads"));
}

static void the_users_rules_win(void **state)
{
	assert_int_equal(rls_roles_add(*state, RLS_ROLE_NATIVE, "libtorch_python*"), 0);
	assert_int_equal(role_of(*state, "/x/libtorch_python.so"), RLS_ROLE_NATIVE);
	assert_int_equal(rls_roles_add(*state, RLS_ROLE_SIMULATOR, "libtorch_python*"), 0);
	/* The first one given. */
	assert_int_equal(role_of(*state, "/x/libtorch_python.so"), RLS_ROLE_NATIVE);
}

static void globs_match_names_paths_and_tails(void **state)
{
	assert_int_equal(rls_roles_add(*state, RLS_ROLE_SIMULATOR, "libmysim*.so"), 0);
	assert_int_equal(rls_roles_add(*state, RLS_ROLE_BACKEND, "/opt/exact/lib.so"), 0);
	assert_int_equal(rls_roles_add(*state, RLS_ROLE_NATIVE, "pkg/_ext*"), 0);
	assert_int_equal(role_of(*state, "/a/libmysim2.so"), RLS_ROLE_SIMULATOR);
	assert_int_equal(role_of(*state, "/a/libmysim2.so.1"), RLS_ROLE_NONE);
	assert_int_equal(role_of(*state, "/opt/exact/lib.so"), RLS_ROLE_BACKEND);
	assert_int_equal(role_of(*state, "/opt/other/lib.so"), RLS_ROLE_NONE);
	assert_int_equal(role_of(*state, "/v/pkg/_ext.abi3.so"), RLS_ROLE_NATIVE);
	assert_int_equal(role_of(*state, "/v/notpkg/_ext.abi3.so"), RLS_ROLE_NONE);
}

static void a_whole_library_is_without_glue(void **state)
{
	struct rls_role_match match;

	assert_int_equal(rls_roles_add(*state, RLS_ROLE_SIMULATOR, "libmysim.so"), 0);
	assert_true(rls_roles_match(*state, "/a/libmysim.so", &match));
	assert_true(rls_role_match_wants_export(&match, "sim_step"));
	assert_true(rls_role_match_wants_export(&match, "_ZN3sim4stepEv"));
	assert_true(rls_role_match_wants_method(&match, "anything"));
	assert_false(rls_role_match_wants_export(&match, "PyInit_mysim"));
	assert_false(rls_role_match_wants_export(&match, "_init"));
	assert_false(rls_role_match_wants_export(&match, "_ZNSt6vectorIiE4pushEv"));
}

static void symbols_narrow_and_add_up(void **state)
{
	struct rls_role_match match;

	assert_int_equal(rls_roles_add(*state, RLS_ROLE_SIMULATOR, "libmysim.so:step*"), 0);
	assert_int_equal(rls_roles_add(*state, RLS_ROLE_SIMULATOR, "libmysim.so:reset"), 0);
	assert_true(rls_roles_match(*state, "/a/libmysim.so", &match));
	assert_true(rls_role_match_wants_export(&match, "step_all"));
	assert_true(rls_role_match_wants_export(&match, "reset"));
	assert_false(rls_role_match_wants_export(&match, "render"));
	assert_true(rls_role_match_wants_method(&match, "mysim.World.step_all"));
	assert_true(rls_role_match_wants_method(&match, "reset"));
	assert_false(rls_role_match_wants_method(&match, "mysim.World.render"));
}

static void refuses_empty_parts(void **state)
{
	assert_int_equal(rls_roles_add(*state, RLS_ROLE_NATIVE, ""), -EINVAL);
	assert_int_equal(rls_roles_add(*state, RLS_ROLE_NATIVE, ":x"), -EINVAL);
	assert_int_equal(rls_roles_add(*state, RLS_ROLE_NATIVE, "x:"), -EINVAL);
}

static int parse_text(struct rls_roles *roles, const char *text)
{
	char path[] = "/tmp/rls-roles-XXXXXX";
	int fd = mkstemp(path), result;

	assert_true(fd >= 0);
	assert_int_equal(write(fd, text, strlen(text)), strlen(text));
	close(fd);
	result = rls_roles_parse_file(roles, path);
	unlink(path);
	return result;
}

static void reads_a_configuration(void **state)
{
	assert_int_equal(parse_text(*state, "# mine\n\n  simulator libmysim*.so  # the fast one\n"
					    "native\tlibhelp.so:h_*\n"
					    "backend libback.so"),
			 0);
	assert_int_equal(role_of(*state, "/a/libmysim1.so"), RLS_ROLE_SIMULATOR);
	assert_int_equal(role_of(*state, "/a/libhelp.so"), RLS_ROLE_NATIVE);
	assert_int_equal(role_of(*state, "/a/libback.so"), RLS_ROLE_BACKEND);
}

static void a_broken_configuration_adds_nothing(void **state)
{
	assert_int_equal(parse_text(*state, "simulator liba.so\nwizard libb.so\n"), -EINVAL);
	assert_int_equal(role_of(*state, "/a/liba.so"), RLS_ROLE_NONE);
	assert_int_equal(parse_text(*state, "simulator\n"), -EINVAL);
	assert_int_equal(parse_text(*state, "simulator a b\n"), -EINVAL);
	assert_int_equal(parse_text(*state, "simulator a:\n"), -EINVAL);
	assert_int_equal(parse_text(*state, "cuda a\n"), -EINVAL);
	assert_int_equal(rls_roles_parse_file(*state, "/nowhere/at/all"), -ENOENT);
	assert_int_equal(rls_roles_parse_file(*state, "/"), -EIO);
	/* And what comes after still works. */
	assert_int_equal(parse_text(*state, "simulator liba.so\n"), 0);
	assert_int_equal(role_of(*state, "/a/liba.so"), RLS_ROLE_SIMULATOR);
}

#define with_roles(test) cmocka_unit_test_setup_teardown(test, make_roles, free_roles)

int main(void)
{
	const struct CMUnitTest tests[] = {
		with_roles(the_table_knows_real_paths),
		with_roles(no_rule_hides_a_later_one),
		with_roles(what_is_behind_a_binding_has_nothing_to_take),
		with_roles(what_a_thin_module_passes_on_to_has_the_methods),
		with_roles(only_outer_exports_of_a_plain_library),
		with_roles(the_users_rules_win),
		with_roles(globs_match_names_paths_and_tails),
		with_roles(a_whole_library_is_without_glue),
		with_roles(symbols_narrow_and_add_up),
		with_roles(refuses_empty_parts),
		with_roles(reads_a_configuration),
		with_roles(a_broken_configuration_adds_nothing),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
