/* nvml.c: see nvml.h. */
#include "live/nvml.h"

#include <dlfcn.h>

/* What we need of nvml.h; all functions return 0 for success. */
struct nvml_utilization {
	unsigned gpu, memory;
};
struct nvml_memory {
	unsigned long long total, free, used;
};

/* A function of the library as a pointer of its type. */
#define FIND(nvml, name, ...)                                                                      \
	int (*name)(__VA_ARGS__);                                                                  \
	*(void **)&name = dlsym((nvml)->library, #name)

static bool find_devices(struct nvml *nvml)
{
	FIND(nvml, nvmlInit_v2, void);
	FIND(nvml, nvmlDeviceGetCount_v2, unsigned *);
	FIND(nvml, nvmlDeviceGetHandleByIndex_v2, unsigned, void **);
	FIND(nvml, nvmlDeviceGetName, void *, char *, unsigned);
	unsigned count = 0;

	if (!nvmlInit_v2 || !nvmlDeviceGetCount_v2 || !nvmlDeviceGetHandleByIndex_v2 ||
	    nvmlInit_v2() != 0)
		return false;
	if (nvmlDeviceGetCount_v2(&count) != 0)
		return false;
	for (unsigned i = 0; i < count && nvml->count < NVML_DEVICES; i++) {
		struct nvml_device *device = &nvml->devices[nvml->count];

		if (nvmlDeviceGetHandleByIndex_v2(i, &device->handle) != 0)
			continue;
		if (!nvmlDeviceGetName ||
		    nvmlDeviceGetName(device->handle, device->name, sizeof(device->name)) != 0)
			snprintf(device->name, sizeof(device->name), "gpu %u", i);
		nvml->count++;
	}
	return nvml->count > 0;
}

bool nvml_open(struct nvml *nvml, const char *name)
{
	*nvml = (struct nvml){ .library = dlopen(name ? name : "libnvidia-ml.so.1",
						 RTLD_NOW | RTLD_LOCAL) };
	if (!nvml->library)
		return false;
	if (find_devices(nvml))
		return true;
	nvml_close(nvml);
	return false;
}

void nvml_close(struct nvml *nvml)
{
	if (!nvml->library)
		return;
	FIND(nvml, nvmlShutdown, void);
	if (nvmlShutdown)
		nvmlShutdown();
	dlclose(nvml->library);
	*nvml = (struct nvml){ 0 };
}

static void set(struct nvml_device *device, enum gpu_metric metric, bool known, uint64_t value)
{
	device->known[metric] = known;
	if (known)
		device->values[metric] = value;
}

void nvml_read(struct nvml *nvml)
{
	FIND(nvml, nvmlDeviceGetUtilizationRates, void *, struct nvml_utilization *);
	FIND(nvml, nvmlDeviceGetMemoryInfo, void *, struct nvml_memory *);
	FIND(nvml, nvmlDeviceGetPowerUsage, void *, unsigned *);

	for (uint32_t i = 0; i < nvml->count; i++) {
		struct nvml_device *device = &nvml->devices[i];
		struct nvml_utilization use = { 0 };
		struct nvml_memory memory = { 0 };
		unsigned milliwatts = 0;
		bool good;

		good = nvmlDeviceGetUtilizationRates &&
		       nvmlDeviceGetUtilizationRates(device->handle, &use) == 0;
		set(device, GPU_BUSY, good, use.gpu);
		set(device, GPU_MEMORY_BUSY, good, use.memory);
		good = nvmlDeviceGetMemoryInfo &&
		       nvmlDeviceGetMemoryInfo(device->handle, &memory) == 0;
		set(device, GPU_MEMORY_USED, good, memory.used);
		set(device, GPU_MEMORY_TOTAL, good, memory.total);
		good = nvmlDeviceGetPowerUsage &&
		       nvmlDeviceGetPowerUsage(device->handle, &milliwatts) == 0;
		set(device, GPU_POWER, good, milliwatts);
	}
}
