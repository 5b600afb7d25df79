import { z } from 'zod';
import { accountNetworks } from './credentials.ts';
import { outsidePlugin } from './plugin-schema.ts';
import { fileSchema } from './schema.ts';

/** The schemas by which channels and plugins check their own settings, by id. */
export type PartSchemas = {
  readonly channels: Readonly<Record<string, z.ZodType>>;
  readonly plugins: Readonly<Record<string, z.ZodType>>;
};

/** The part of a JSON Schema that describes settings. */
export type SettingsSchema = {
  readonly description?: string;
  readonly default?: unknown;
  readonly items?: SettingsSchema;
  properties?: Readonly<Record<string, SettingsSchema>>;
  additionalProperties?: SettingsSchema | boolean;
};

/** Returns the JSON Schema of parley.config.json with its parts' settings, for editors and `parley config schema`. */
export function configJsonSchema(parts: PartSchemas): SettingsSchema {
  const schema = { title: 'parley.config.json', ...jsonSchemaOf(fileSchema) };
  for (const group of ['channels', 'plugins'] as const)
    for (const [id, own] of Object.entries(parts[group]))
      addOwn(schema.properties?.[group]?.properties?.[id], jsonSchemaOf(own).properties ?? {});
  const { plugins } = schema.properties ?? {};
  if (plugins) plugins.additionalProperties = jsonSchemaOf(outsidePlugin);
  return schema;
}

function jsonSchemaOf(schema: z.ZodType): SettingsSchema {
  // zod's type of a JSON Schema also allows booleans, which it never produces for objects.
  return z.toJSONSchema(schema, { io: 'input', unrepresentable: 'any' }) as SettingsSchema;
}

/** Settings that come from the environment. */
const secrets: ReadonlySet<string> = new Set([
  ...Object.values(accountNetworks).map(({ setting }) => setting),
  'searchKey',
]);

/** Adds a part's own settings, also to a network's accounts, which take the same ones. */
function addOwn(place: SettingsSchema | undefined, own: Readonly<Record<string, SettingsSchema>>): void {
  const settings = Object.fromEntries(Object.entries(own).filter(([name]) => !secrets.has(name)));
  for (const each of [place, place?.properties?.accounts?.additionalProperties]) {
    if (typeof each !== 'object') continue;
    each.properties = { ...settings, ...each.properties };
    each.additionalProperties = false;
  }
}
