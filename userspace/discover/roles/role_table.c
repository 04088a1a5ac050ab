/* The built-in roles: file names of the libraries that Python training jobs are made of.
 *
 * An extension module's boundary is its Python methods. A plain C library is entered
 * through exports (from ctypes, Cython or its own binding): only the outer ones are listed,
 * since every export would include functions that the library's own loops call.
 * Libraries behind a binding (libtorch_cpu) have no function that Python calls, and so
 * no sites. The table has them so that reports know their role.
 *
 * The first rule that matches wins, and a "*" matches across folders. Narrow rules come first.
 */
#include "userspace/discover/roles/roles.h"

static const char *const mujoco_exports[] = {
	"mj_step",
	"mj_step1",
	"mj_step2",
	"mj_forward",
	"mj_inverse",
	"mj_resetData",
	"mj_resetDataKeyframe",
	"mj_resetDataDebug",
	"mj_loadXML",
	"mj_loadModel",
	"mj_makeData",
	"mj_copyData",
	"mj_deleteData",
	"mj_deleteModel",
	"mj_saveModel",
	"mj_compile",
	"mj_parseXML",
	"mj_rollout",
	"mjd_transitionFD",
	"mjd_inverseFD",
	"mjr_render",
	"mjr_readPixels",
	"mjr_makeContext",
	"mjr_freeContext",
	"mjv_updateScene",
	"mjv_makeScene",
	"mjv_freeScene",
	NULL,
};

static const char *const ale_exports[] = {"act",        "reset_game", "loadROM",
					  "getScreen*", "getRAM",     NULL};

static const char *const xgboost_exports[] = {"XG*", NULL};
static const char *const lightgbm_exports[] = {"LGBM_*", NULL};

static const char *const bullet_exports[] = {"b3SubmitClientCommandAndWaitStatus",
					     "b3ConnectPhysics*", NULL};

/* Entry points that user code and the frameworks call; cudart's own helpers
 * (__cudaRegister*, __cudaPushCallConfiguration) are left out. */
static const char *const cudart_exports[] = {
	"cudaLaunch*",
	"cudaMemcpy*",
	"cudaMemset*",
	"cudaMemPrefetch*",
	"cudaMalloc*",
	"cudaFree*",
	"cudaHostAlloc",
	"cudaHostRegister",
	"cudaHostUnregister",
	"cudaStream*",
	"cudaDeviceSynchronize",
	"cudaThreadSynchronize",
	"cudaDeviceReset",
	"cudaEvent*",
	"cudaGraphLaunch*",
	"cudaGraphInstantiate*",
	"cudaGraphExec*",
	"cudaGraphUpload*",
	"cudaSetDevice",
	"cudaMemPool*",
	"cudaIpc*",
	NULL,
};

static const char *const cuda_driver_exports[] = {
	"cuLaunch*",
	"cuMemcpy*",
	"cuMemset*",
	"cuMemAlloc*",
	"cuMemFree*",
	"cuMemHost*",
	"cuMemPrefetch*",
	"cuMemCreate",
	"cuMemMap*",
	"cuMemUnmap",
	"cuMemRelease",
	"cuStream*",
	"cuEvent*",
	"cuGraphLaunch*",
	"cuGraphInstantiate*",
	"cuGraphExec*",
	"cuGraphUpload*",
	"cuCtxSynchronize*",
	"cuModuleLoad*",
	"cuModuleUnload",
	"cuLibraryLoad*",
	"cuInit",
	NULL,
};

#define MODULE(role_, glob_)                                                                       \
	{                                                                                          \
		RLS_ROLE_##role_, glob_, RLS_METHODS_ALL, NULL                                     \
	}
#define EXPORTS(role_, glob_, symbols_)                                                            \
	{                                                                                          \
		RLS_ROLE_##role_, glob_, RLS_METHODS_NONE, symbols_                                \
	}
#define BEHIND(role_, glob_)                                                                       \
	{                                                                                          \
		RLS_ROLE_##role_, glob_, RLS_METHODS_NONE, NULL                                    \
	}

const struct rls_role_rule rls_role_table[] = {
	/* PyTorch and what is built on it */
	MODULE(BACKEND, "libtorch_python*.so*"),
	MODULE(BACKEND, "torch/_C*.so"),
	MODULE(BACKEND, "functorch/_C*.so"),
	BEHIND(BACKEND, "libtorch.so*"),
	BEHIND(BACKEND, "libtorch_*.so*"),
	BEHIND(BACKEND, "libc10*.so*"),
	BEHIND(BACKEND, "torch/lib/*.so*"),
	MODULE(BACKEND, "torchvision/*.so"),
	MODULE(BACKEND, "torchaudio/*.so"),
	MODULE(BACKEND, "torchtext/*.so"),
	MODULE(BACKEND, "torchrl/*.so"),
	MODULE(BACKEND, "tensordict/*.so"),
	MODULE(BACKEND, "triton/_C/*.so"),
	MODULE(BACKEND, "__triton_launcher*.so"),
	MODULE(BACKEND, "cuda_utils*.so"),
	MODULE(BACKEND, "hip_utils*.so"),
	/* What torch.compile makes: in its own folder, or wherever TORCHINDUCTOR_CACHE_DIR says. */
	MODULE(BACKEND, "torchinductor_*/*.so"),
	MODULE(BACKEND, "*.main.so"),
	MODULE(BACKEND, "*.wrapper.so"),
	/* Operators that torch.ops calls, and modules with methods of their own */
	MODULE(BACKEND, "xformers/*.so"),
	MODULE(BACKEND, "vllm/*.so"),
	MODULE(BACKEND, "flash_attn*.so"),
	MODULE(BACKEND, "flashinfer/*.so"),
	MODULE(BACKEND, "bitsandbytes/*.so"),
	MODULE(BACKEND, "torch_scatter/*.so"),
	MODULE(BACKEND, "torch_sparse/*.so"),
	MODULE(BACKEND, "torch_cluster/*.so"),
	/* TensorFlow */
	MODULE(BACKEND, "_pywrap_*.so"),
	MODULE(BACKEND, "tensorflow/python/*.so"),
	MODULE(BACKEND, "tensorflow/compiler/*.so"),
	MODULE(BACKEND, "tensorflow/lite/*.so"),
	BEHIND(BACKEND, "libtensorflow*.so*"),
	/* JAX */
	/* Since 0.6 its modules are thin: their methods lie in libjax_common. */
	MODULE(BACKEND, "libjax_common*.so*"),
	MODULE(BACKEND, "jaxlib/*.so"),
	MODULE(BACKEND, "xla_extension*.so"),
	MODULE(BACKEND, "jax_cuda*_plugin/*.so"),
	BEHIND(BACKEND, "xla_cuda_plugin.so"),
	/* Others */
	MODULE(BACKEND, "onnxruntime_pybind11_state*.so"),
	BEHIND(BACKEND, "libonnxruntime*.so*"),
	EXPORTS(BACKEND, "libmxnet*.so*", ((const char *const[]){"MX*", NULL})),
	MODULE(BACKEND, "mxnet/_cy*/*.so"),
	MODULE(BACKEND, "cupy/*.so"),
	MODULE(BACKEND, "cupy_backends/*.so"),
	MODULE(BACKEND, "libpaddle*.so"),
	MODULE(BACKEND, "mlx/core*.so"),
	MODULE(BACKEND, "mindspore/_c_*.so"),

	/* Simulators */
	EXPORTS(SIMULATOR, "libmujoco*.so*", mujoco_exports),
	MODULE(SIMULATOR, "mujoco/_*.so"),
	MODULE(SIMULATOR, "mujoco_py/*.so"),
	MODULE(SIMULATOR, "cymj*.so"),
	MODULE(SIMULATOR, "pybullet*.so"),
	EXPORTS(SIMULATOR, "libpybullet*.so*", bullet_exports),
	MODULE(SIMULATOR, "_Box2D*.so"),
	MODULE(SIMULATOR, "_ale_py*.so"),
	MODULE(SIMULATOR, "ale_py/*.so"),
	EXPORTS(SIMULATOR, "libale_c*.so*", ale_exports),
	MODULE(SIMULATOR, "stella*/*.so"),
	MODULE(SIMULATOR, "retro/_retro*.so"),
	MODULE(SIMULATOR, "stable_retro/_retro*.so"),
	BEHIND(SIMULATOR, "*_libretro.so"),
	EXPORTS(SIMULATOR, "procgen/*/libenv.so", ((const char *const[]){"libenv_*", NULL})),
	MODULE(SIMULATOR, "procgen/*.so"),
	BEHIND(SIMULATOR, "memfd:nle.so*"),
	BEHIND(SIMULATOR, "nle/libnethack*.so"),
	MODULE(SIMULATOR, "nle/_pynethack*.so"),
	MODULE(SIMULATOR, "_pynethack*.so"),
	MODULE(SIMULATOR, "pyspiel*.so"),
	MODULE(SIMULATOR, "vizdoom*.so"),
	BEHIND(SIMULATOR, "vizdoom/vizdoom"), /* the engine, a process of its own */
	MODULE(SIMULATOR, "deepmind_lab*.so"),
	MODULE(SIMULATOR, "envpool/*.so"),
	MODULE(SIMULATOR, "gfootball_engine*.so"),
	MODULE(SIMULATOR, "_gameplayfootball*.so"),
	MODULE(SIMULATOR, "libcarla*.so"),
	MODULE(SIMULATOR, "habitat_sim/*.so"),
	MODULE(SIMULATOR, "raisimpy*.so"),
	MODULE(SIMULATOR, "pydrake/*.so"),
	MODULE(SIMULATOR, "dartpy*.so"),
	MODULE(SIMULATOR, "sapien/*.so"),
	MODULE(SIMULATOR, "isaacgym/*.so"),
	MODULE(SIMULATOR, "omni/physx/*.so"),
	MODULE(SIMULATOR, "pymunk/_chipmunk*.so"),
	MODULE(SIMULATOR, "libsumo/*.so"),

	/* Native libraries of which Python calls few functions, each long. Those that it calls for
	 * single numbers (NumPy, pandas, SWIG bindings) would be slowed by probes: samples say what
	 * runs in them. */
	MODULE(NATIVE, "cv2*.so"),
	MODULE(NATIVE, "tokenizers*.so"),
	MODULE(NATIVE, "_polars_runtime*.so"),
	MODULE(NATIVE, "polars/polars*.so"),
	BEHIND(NATIVE, "pyarrow/libarrow*.so*"),
	BEHIND(NATIVE, "pyarrow/libparquet*.so*"),
	MODULE(NATIVE, "pyarrow/*.so"),
	MODULE(NATIVE, "numba/_dispatcher*.so"),
	MODULE(NATIVE, "taichi_python*.so"),
	EXPORTS(NATIVE, "libxgboost*.so*", xgboost_exports),
	EXPORTS(NATIVE, "lib_lightgbm*.so*", lightgbm_exports),

	/* CUDA: the runtime sees only part of the launches, the driver all of them */
	EXPORTS(CUDA, "libcudart*.so*", cudart_exports),
	EXPORTS(CUDA, "libcuda.so*", cuda_driver_exports),

	/* The interpreter, and the modules through which a C library without a binding of its
	 * own calls Python back: what they call is Python. */
	BEHIND(PYTHON, "libpython[23]*.so*"),
	{RLS_ROLE_PYTHON, "_ctypes.*.so", RLS_METHODS_CALLBACKS, NULL},
	{RLS_ROLE_PYTHON, "_cffi_backend*.so", RLS_METHODS_CALLBACKS, NULL},
	{RLS_ROLE_NONE, NULL, RLS_METHODS_NONE, NULL},
};
