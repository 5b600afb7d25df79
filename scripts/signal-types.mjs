#!/usr/bin/env node
// Writes channels/signal/api.generated.ts: the request types this channel uses, from the
// swagger document of signal-cli-rest-api. These 60 lines exist because the document is Swagger 2.0, which
// openapi-typescript 7 doesn't read. `node scripts/signal-types.mjs` writes, `--check` compares.
import { readFileSync, writeFileSync } from 'node:fs';

const document = new URL('../test/platforms/signal/swagger.json', import.meta.url);
const target = new URL('../channels/signal/api.generated.ts', import.meta.url);

/** Definition in the document → name of the type here. Every type they refer to must be listed too. */
const wanted = {
  'api.SendMessageV2': 'SendRequest',
  'data.MessageMention': 'MentionRequest',
  'data.LinkPreviewType': 'LinkPreviewRequest',
  'api.SendReactionRequest': 'ReactionRequest',
  'api.RemoveReactionRequest': 'RemoveReactionRequest',
  'api.RemoteDeleteRequest': 'RemoteDeleteRequest',
  'api.Receipt': 'ReceiptRequest',
  'api.TypingIndicatorRequest': 'TypingRequest',
};

const { definitions } = JSON.parse(readFileSync(document, 'utf8'));

function typeOf(schema) {
  if (schema.$ref) return nameOf(schema.$ref.split('/').at(-1));
  if (schema.enum) return schema.enum.map((value) => `'${value}'`).join(' | ');
  switch (schema.type) {
    case 'array': {
      const item = typeOf(schema.items);
      return `readonly ${item.includes('|') ? `(${item})` : item}[]`;
    }
    case 'integer':
    case 'number':
      return 'number';
    case 'string':
    case 'boolean':
      return schema.type;
    case 'object':
      return schema.additionalProperties
        ? `Readonly<Record<string, ${typeOf(schema.additionalProperties)}>>`
        : membersOf(schema);
    default:
      throw new Error(`no type for ${JSON.stringify(schema)}`);
  }
}

function nameOf(definition) {
  const name = wanted[definition];
  if (name === undefined) throw new Error(`add ${definition} to the list: a wanted type refers to it`);
  return name;
}

function membersOf({ properties = {}, required = [] }) {
  const members = Object.entries(properties).map(
    ([name, schema]) => `  readonly ${name}${required.includes(name) ? '' : '?'}: ${typeOf(schema)};\n`,
  );
  return `{\n${members.join('')}}`;
}

const types = Object.entries(wanted).map(([definition, name]) => {
  const schema = definitions[definition];
  if (schema === undefined) throw new Error(`the document has no ${definition}`);
  return `/** \`${definition}\` */\nexport type ${name} = ${typeOf(schema)};\n`;
});
const text = `// Made by scripts/signal-types.mjs from the swagger document of signal-cli-rest-api. Do not edit.\n\n${types.join('\n')}`;

if (process.argv.includes('--check')) {
  if (readFileSync(target, 'utf8') !== text) {
    process.stderr.write(
      'channels/signal/api.generated.ts is not up to date: node scripts/signal-types.mjs\n',
    );
    process.exitCode = 1;
  }
} else {
  writeFileSync(target, text);
}
