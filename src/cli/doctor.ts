import { parleyCommand } from '#channel-kit/own-commands.ts';
import type { Config } from '../config/config.ts';
import { loadReadableConfig } from '../config/load-config.ts';
import { secretsOf } from '../config/secrets-of.ts';
import { createRedactor, stripText } from '../logging/redaction.ts';
import { findDisagreements } from './agree-with-processes.ts';
import { type ConfiguredParts, checkConfig } from './config-check.ts';
import { checkChannels } from './doctor/channel-checks.ts';
import { type DoctorCheck, failed, ok, renderChecks } from './doctor/check.ts';
import { checkPrices, checkRedis, checkStore } from './doctor/engine-checks.ts';
import { askAboutParts, askRunningGateway, checkEnvironment } from './doctor/environment-checks.ts';
import { checkFolder, checkNode, checkPort } from './doctor/host-checks.ts';
import { checkModels } from './doctor/model-checks.ts';
import { checkPlugins } from './doctor/plugin-checks.ts';
import { checkProcesses } from './doctor/process-checks.ts';
import type { CommandOutput } from './print.ts';
import { settingsSources } from './settings-sources.ts';
import { skillsForDoctor } from './skills.ts';

/**
 * Checks everything that Parley needs and says how to fix what is wrong. Works alongside a running gateway,
 * and changes nothing unless asked to. The exit code is 1 when a check failed.
 */
export async function examineSetup(options: {
  readonly parts: ConfiguredParts;
  /** Fixes what can safely be fixed. */
  readonly fixes: boolean;
}): Promise<CommandOutput> {
  const { parts, fixes } = options;
  const { checks, config } = await examine(parts, fixes);
  const redactor = createRedactor(config === undefined ? [] : secretsOf(config));
  const clean = (text: string) => redactor.redact(text).split('\n').map(stripText).join('\n');
  const shown = checks.map(({ detail, fix, ...check }) => ({
    ...check,
    detail: clean(detail),
    ...(fix !== undefined && { fix: clean(fix) }),
  }));
  const isWell = shown.every(({ result }) => result !== 'failed');
  return { result: { isWell, checks: shown }, lines: [renderChecks(shown)], code: isWell ? 0 : 1 };
}

type DoctorFindings = { readonly checks: readonly DoctorCheck[]; readonly config?: Config };

async function examine(parts: ConfiguredParts, fixes: boolean): Promise<DoctorFindings> {
  const node = checkNode();
  const read = await readConfiguration(parts);
  // All other checks depend on where the data is.
  if (read.config === undefined) return { checks: [node, read.check] };
  const { config } = read;
  if (read.check.result === 'failed') {
    const found = [checkFolder(config, { fixes }), checkPort(config), checkProcesses(config)];
    const rest = await Promise.all([...found, askRunningGateway(config)]);
    return { config, checks: [node, read.check, ...rest.flat()] };
  }
  const differing = await findDisagreements(config);
  const isOtherwise = differing.some(({ lacking }) => lacking.length > 0);
  const rest = await Promise.all([
    checkEnvironment(differing),
    checkFolder(config, { fixes }),
    checkPort(config),
    checkProcesses(config),
    checkPrices(config),
    checkPlugins(config, parts.plugins),
    skillsForDoctor(config),
    ...(isOtherwise
      ? [askAboutParts(config)]
      : [checkRedis(config), checkStore(config), checkModels(config), checkChannels(config, parts.channels)]),
  ]);
  return { config, checks: [node, read.check, ...rest.flat()] };
}

async function readConfiguration(
  parts: ConfiguredParts,
): Promise<{ readonly check: DoctorCheck; readonly config?: Config }> {
  const name = 'config';
  const fix = `fix the problems listed above; to see whether any are left: ${parleyCommand} config check`;
  const inWords = (error: unknown) => (error instanceof Error ? error.message : String(error));
  try {
    const { config, problem } = loadReadableConfig();
    if (problem !== undefined) return { check: failed(name, problem, fix), config };
    const detail = await checkConfig(config, parts).then(() => undefined, inWords);
    return {
      check: detail === undefined ? ok(name, settingsSources(config)) : failed(name, detail, fix),
      config,
    };
  } catch (error) {
    return { check: failed(name, inWords(error), fix) };
  }
}
