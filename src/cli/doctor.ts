import type { Config } from '../config/config.ts';
import { loadConfig } from '../config/load-config.ts';
import { secretsOf } from '../config/secrets-of.ts';
import { createRedactor, stripText } from '../logging/redaction.ts';
import { findDisagreements } from './agree-with-processes.ts';
import { type ConfiguredParts, checkConfig } from './config-check.ts';
import { checkChannels } from './doctor/channel-checks.ts';
import { type DoctorCheck, failed, ok, renderChecks } from './doctor/check.ts';
import { checkPrices, checkRedis, checkStore } from './doctor/engine-checks.ts';
import { askAboutParts, checkEnvironment } from './doctor/environment-checks.ts';
import { checkFolder, checkNode, checkPort } from './doctor/host-checks.ts';
import { checkModels } from './doctor/model-checks.ts';
import { checkProcesses } from './doctor/process-checks.ts';
import type { CommandOutput } from './print.ts';
import { settingsSources } from './settings-sources.ts';

export type DoctorOptions = {
  readonly parts: ConfiguredParts;
  /** Fixes what can safely be fixed. */
  readonly fixes: boolean;
};

/**
 * Checks everything that Parley needs and says how to fix what is wrong. Works alongside a running gateway,
 * and changes nothing unless asked to. The exit code is 1 when a check failed.
 */
export async function examineSetup({ parts, fixes }: DoctorOptions): Promise<CommandOutput> {
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
  // All other checks depend on the configuration.
  if (read.config === undefined) return { checks: [node, read.check] };
  const { config } = read;
  const differing = await findDisagreements(config);
  const isOtherwise = differing.some(({ lacking }) => lacking.length > 0);
  const rest = await Promise.all([
    checkEnvironment(differing),
    checkFolder(config, { fixes }),
    checkPort(config),
    checkProcesses(config),
    checkPrices(config),
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
  try {
    const config = loadConfig();
    await checkConfig(config, parts);
    return { check: ok(name, settingsSources(config)), config };
  } catch (error) {
    const detail = error instanceof Error ? error.message : String(error);
    return { check: failed(name, detail, 'fix the problems listed above') };
  }
}
