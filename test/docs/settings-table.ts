import type { SettingsSchema } from '../../src/config/json-schema.ts';
import { isLive } from '../../src/config/live-settings.ts';

export type Setting = {
  /** In the form in which people write it: `agents[].tools.deny`, `models.<name>.window`. */
  readonly path: string;
  readonly schema: SettingsSchema;
  /** Its own description, or that of the nearest enclosing group with one. */
  readonly description: string | undefined;
};

/** Lists every setting of the schema, in its order. Settings that accounts inherit from their network appear once. */
export function settingsIn(
  schema: SettingsSchema,
  { path = '', description }: { readonly path?: string; readonly description?: string } = {},
): readonly Setting[] {
  const { properties, items, additionalProperties: entries } = schema;
  const own = schema.description ?? description;
  const around = { ...(own !== undefined && { description: own }) };
  if (properties && Object.keys(properties).length > 0)
    return Object.entries(properties).flatMap(([name, each]) => {
      if (name === '$schema' || (/\.accounts\.<name>$/.test(path) && !/^(enabled|tokenEnv)$/.test(name)))
        return [];
      return settingsIn(each, { path: path === '' ? name : `${path}.${name}`, ...around });
    });
  if (items?.properties) return settingsIn(items, { path: `${path}[]`, ...around });
  if (typeof entries === 'object' && (entries.properties || Object.keys(entries).length > 0))
    return settingsIn(entries, { path: `${path}.<name>`, ...around });
  return [{ path, schema, description: own }];
}

/** Renders the document of all settings. */
export function renderSettings(settings: readonly Setting[]): string {
  const rows = settings.map(({ path, schema, description = '' }) => {
    const cells = [
      `\`${path}\`${isLive(path) ? ' *' : ''}`,
      defaultOf(schema),
      description.replaceAll('|', '\\|').replaceAll('<', '&lt;'),
    ];
    return `| ${cells.join(' | ')} |`;
  });
  return `# Settings

Every setting of \`parley.config.json\`, generated from the schema that Parley checks the file with (\`npx vitest run test/docs -u\`).
[configuration.md](configuration.md) says where the file belongs and what comes from the environment instead.
\`./bin/parley.mjs reload\` applies settings marked *; the others take effect at the next start.

| setting | default | means |
|---|---|---|
${rows.join('\n')}
`;
}

function defaultOf({ default: value }: SettingsSchema): string {
  const isEmpty = typeof value === 'object' && value !== null && Object.keys(value).length === 0;
  return value === undefined || isEmpty ? '' : `\`${JSON.stringify(value).replaceAll('|', '\\|')}\``;
}
