import type { Config } from '../../config/config.ts';
import { findModel } from '../../config/model-settings.ts';
import { valueAt } from '../../config/problem.ts';
import type { SettingsChange, WrittenSettings } from '../../config/write-settings.ts';

/** Says where the settings were written, or what to change by hand in a file with comments. */
export function wordsForWritten({ path, isWritten, text, removed }: WrittenSettings): string {
  const names = removed.join(', ');
  if (isWritten) return `Settings: ${path}${names === '' ? '' : ` (removed: ${names})`}`;
  const removal = names === '' ? '' : `\nAnd remove from it: ${names}`;
  return `${path} has comments, so I haven't changed it. Add this to it:\n${text}${removal}`;
}

/**
 * Says which model answers according to the re-read settings, and which of the written ones have no effect. `changed`:
 * the chosen settings.
 */
export function wordsForEffect(config: Config, changed: SettingsChange): readonly string[] {
  // A variable that says the same hides nothing.
  const hidden = config.hiddenSettings.filter(({ setting }) => {
    const written = valueAt(changed, setting.split('.'));
    return written !== undefined && written !== valueAt(config, setting.split('.'));
  });
  const agent = config.agents.find(({ id }) => id === config.defaultAgent);
  const isOwnModel = agent?.model !== undefined && agent.model !== config.model;
  return [
    ...hidden.map(
      ({ setting, by }) => `${by} ${placeOf(by, config)} takes precedence over ${setting}: unset it there.`,
    ),
    ...(isOwnModel && 'model' in changed
      ? [`The agent ${agent.id} has its own model in ${config.configPath}: change it there.`]
      : []),
    `Model: ${describeModel(agent?.model ?? config.model, config)}`,
  ];
}

/** Says where a variable was read from. */
export function placeOf(variable: string, { envFiles }: Pick<Config, 'envFiles'>): string {
  const file = envFiles.find(({ names }) => names.includes(variable));
  return file === undefined ? "of this shell's environment" : `in ${file.path}`;
}

/** Returns `openai/gpt-6-luna`, and the server unless it is the vendor's own. */
function describeModel(name: string, config: Config): string {
  const baseUrl = config.providers[findModel(name, config)?.provider ?? '']?.baseUrl;
  return baseUrl === undefined ? name : `${name} at ${new URL(baseUrl).host}`;
}
