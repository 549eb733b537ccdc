// SPDX-License-Identifier: GPL-2.0-only
/*
 * Controls of sensors: temperature, power, clocks, utilisation. Watts, clocks and
 * temperature follow the engine's load between the card's idle and full values.
 */
#include "engine.h"

#define PSTATE_0		BIT(0)
#define PSTATE_8		BIT(8)
#define CLOCK_MEMORY		0x10	/* domain; the others follow the graphics clock */

#define INSTRUCTION_BYTES	44
#define INSTRUCTION_RESULT	0
#define INSTRUCTION_EXECUTED	4
#define INSTRUCTION_OPCODE	8
#define INSTRUCTION_OPERANDS	12
#define EXECUTE_SIZE_OF		8
#define EXECUTE_SUCCESSFUL	16
#define EXECUTE_COUNT		20
#define EXECUTE_LIST		24
#define TARGET_GPU		1
#define HOTTEST_CELSIUS		127

static u32 load(const struct nvsim_control *control)
{
	return nvsim_gr_load(&control->gpu->gr, nvsim_host_now());
}

static u32 between(u32 idle, u32 full, u32 percent)
{
	return idle + (full - idle) * percent / 100;
}

static bool at_rest(const struct nvsim_control *control)
{
	return control->gpu->card->rests && !load(control) &&
	       list_empty(&control->gpu->channels);
}

/* Instructions of the thermal system: one sensor, on the GPU itself. */
static u32 thermal(const struct nvsim_control *control, u8 *instruction)
{
	const struct nvsim_card *card = control->gpu->card;
	u8 *operands = instruction + INSTRUCTION_OPERANDS;
	u32 opcode = get32(instruction, INSTRUCTION_OPCODE);

	if (opcode == 0x100 || opcode == 0x500) {	/* targets, sensors there are */
		put32(operands, 0, 1);
		return NV_OK;
	}
	if (get32(operands, 0))
		return NV_ERR_INVALID_ARGUMENT;
	switch (opcode) {
	case 0x101:	/* type of a target */
		put32(operands, 4, TARGET_GPU);
		return NV_OK;
	case 0x301:	/* type of a provider */
	case 0x510:	/* provider of a sensor */
	case 0x520:	/* target of a sensor */
		put32(operands, 4, 0);
		return NV_OK;
	case 0x540:	/* range of a sensor */
		put32(operands, 4, 0);
		put32(operands, 8, HOTTEST_CELSIUS);
		return NV_OK;
	case 0x1500:	/* reading of a sensor */
		put32(operands, 4, between(card->idle_celsius, card->load_celsius,
					   load(control)));
		return NV_OK;
	}
	return NV_ERR_NOT_SUPPORTED;
}

static u32 execute(struct nvsim_control *control, u8 *list, u32 bytes)
{
	u32 count = get32(control->params, EXECUTE_COUNT), i, successful = 0;

	if (get32(control->params, EXECUTE_SIZE_OF) != INSTRUCTION_BYTES)
		return NV_ERR_INVALID_PARAM_STRUCT;
	for (i = 0; i < count && (i + 1) * INSTRUCTION_BYTES <= bytes; i++) {
		u8 *instruction = list + i * INSTRUCTION_BYTES;
		u32 result = thermal(control, instruction);

		put32(instruction, INSTRUCTION_RESULT, result);
		put32(instruction, INSTRUCTION_EXECUTED, 1);
		successful += result == NV_OK;
	}
	put32(control->params, EXECUTE_SUCCESSFUL, successful);
	return NV_OK;
}

static u32 thermal_execute(struct nvsim_control *control)
{
	return execute(control, control->list[0], control->list_bytes[0]);
}

static u32 thermal_execute_v2(struct nvsim_control *control)
{
	return execute(control, control->params + EXECUTE_LIST,
		       control->size - EXECUTE_LIST);
}

/* Clocks divide by what the thermal system slows them down to: not at all. */
static u32 slowdown(struct nvsim_control *control)
{
	put32(control->params, 4, 1);
	put32(control->params, 8, 1);
	return NV_OK;
}

static u32 no_fan(struct nvsim_control *control)
{
	return NV_ERR_NOT_SUPPORTED;
}

static u32 pstate(struct nvsim_control *control)
{
	put32(control->params, 0, at_rest(control) ? PSTATE_8 : PSTATE_0);
	return NV_OK;
}

static u32 clock_khz(const struct nvsim_control *control, u32 domain)
{
	const struct nvsim_card *card = control->gpu->card;

	if (domain == CLOCK_MEMORY)
		return (at_rest(control) ? card->idle_memory_mhz : card->memory_mhz) * 1000;
	return (load(control) ? card->mhz : card->idle_mhz) * 1000;
}

/* Entries of 24 bytes: domain at 4, kHz at 12. */
static u32 clock_info(struct nvsim_control *control)
{
	u32 count = get32(control->params, 4), i;

	for (i = 0; i < count && 8 + 24 * (i + 1) <= control->size; i++) {
		u8 *entry = control->params + 8 + 24 * i;

		put32(entry, 12, clock_khz(control, get32(entry, 4)));
	}
	return NV_OK;
}

/* Entries of 16 bytes: domain, percent busy; the memory's is not measured. */
static void busy_domains(const struct nvsim_control *control, u8 *list, u32 bytes)
{
	u32 i;

	for (i = 0; (i + 1) * 16 <= bytes; i++)
		put32(list, 16 * i + 4, get32(list, 16 * i) == CLOCK_MEMORY ? 0 : load(control));
}

static u32 utilisation(struct nvsim_control *control)
{
	busy_domains(control, control->list[0], control->list_bytes[0]);
	return NV_OK;
}

static u32 utilisation_v2(struct nvsim_control *control)
{
	u64 bytes = 16ull * get32(control->params, 0);

	busy_domains(control, control->params + 4,
		     min_t(u64, bytes, control->size - 4));
	return NV_OK;
}

static u32 power_sensors(struct nvsim_control *control)
{
	put32(control->params, 0, 1);
	return NV_OK;
}

static u32 power_status(struct nvsim_control *control)
{
	const struct nvsim_card *card = control->gpu->card;

	put32(control->params, nvsim.branch->power_draw,
	      between(card->idle_watts, card->watts, load(control)) * 1000);
	return NV_OK;
}

/* Which policies there are, and the milliwatts of the only one. */
static u32 power_policies(struct nvsim_control *control)
{
	const struct nvsim_card *card = control->gpu->card;
	u32 limits = nvsim.branch->power_limits;

	put32(control->params, 4, 1);
	put32(control->params, limits, card->least_watts * 1000);
	put32(control->params, limits + 4, card->watts * 1000);
	put32(control->params, limits + 8, card->watts * 1000);
	return NV_OK;
}

static u32 power_limit(struct nvsim_control *control)
{
	put32(control->params, 4, control->gpu->card->watts * 1000);
	return NV_OK;
}

static const struct nvsim_list instruction_list[] = {
	{ .pointer = 24, .count = EXECUTE_COUNT, .element = INSTRUCTION_BYTES, .direction = 3 },
};

static const struct nvsim_list domain_list[] = {
	{ .pointer = 8, .count = 0, .element = 16, .direction = 3 },
};

const struct nvsim_control_row nvsim_controls_sensor[] = {
	{ 0x20800512, "THERMAL_SYSTEM_EXECUTE", 32, thermal_execute, instruction_list, 1 },
	{ 0x20800513, "THERMAL_SYSTEM_EXECUTE_V2", 68, thermal_execute_v2 },
	{ 0x20808513, "THERMAL_SYSTEM_EXECUTE_V2 (GSS)", 68, thermal_execute_v2 },
	{ 0x2080052e, "FAN_COOLER_INFO", 4, no_fan },
	{ 0x2080852e, "FAN_COOLER_INFO (GSS)", 4, no_fan },
	{ 0x20800545, "THERMAL_SLOWDOWN", 12, slowdown },
	{ 0x20808545, "THERMAL_SLOWDOWN (GSS)", 12, slowdown },
	{ 0x20801004, "CLK_GET_INFO", 32, clock_info },
	{ 0x20809004, "CLK_GET_INFO (GSS)", 32, clock_info },
	{ 0x20802040, "PERF_GET_UTILIZATION", 40, utilisation, domain_list, 1 },
	{ 0x2080a097, "PERF_GET_UTILIZATION (GSS)", 36, utilisation_v2 },
	{ 0x20802068, "PERF_GET_CURRENT_PSTATE", 4, pstate },
	{ 0x2080a068, "PERF_GET_CURRENT_PSTATE (GSS)", 4, pstate },
	{ 0x20802612, "PMGR_POWER_SENSORS", 4, power_sensors },
	{ 0x2080a612, "PMGR_POWER_SENSORS (GSS)", 4, power_sensors },
	{ 0x20802613, "PMGR_POWER_STATUS", 64, power_status },
	{ 0x2080a613, "PMGR_POWER_STATUS (GSS)", 64, power_status },
	{ 0x20802618, "PMGR_POWER_POLICIES", 128, power_policies },
	{ 0x2080a618, "PMGR_POWER_POLICIES (GSS)", 128, power_policies },
	{ 0x2080261d, "PMGR_POWER_LIMIT", 12, power_limit },
	{ 0x2080a61d, "PMGR_POWER_LIMIT (GSS)", 12, power_limit },
	{ 0x2080261f, "PMGR_ENFORCED_POWER_LIMIT", 8, power_limit },
	{ 0x2080a61f, "PMGR_ENFORCED_POWER_LIMIT (GSS)", 8, power_limit },
	{ }
};
