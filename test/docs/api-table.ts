import { z } from 'zod';
import type { ListedOperation } from '../../src/operations/list.ts';

type Schema = {
  readonly type?: string;
  readonly description?: string;
  readonly properties?: Readonly<Record<string, Schema>>;
  readonly required?: readonly string[];
  readonly items?: Schema;
  readonly anyOf?: readonly Schema[];
  readonly oneOf?: readonly Schema[];
  readonly enum?: readonly unknown[];
  readonly const?: unknown;
  readonly additionalProperties?: Schema | boolean;
};

/** Renders the part of docs/api.md that the table of operations decides. */
export function renderOperations(operations: readonly ListedOperation[]): string {
  const byNoun = Map.groupBy(operations, ({ name }) => name.split('/')[0] ?? '');
  return [...byNoun].map(([noun, ones]) => `### ${noun}\n\n${ones.map(renderOne).join('\n')}`).join('\n');
}

function renderOne({ name, method, summary, scope, right, input, answer, refusals = [] }: ListedOperation) {
  const facts = [
    `scope ${scope === undefined ? `none: only ${right === 'owner' ? 'a sign-in or ' : ''}the access token` : `\`${scope}\``}`,
    ...(refusals.length > 0 ? [`refuses with ${refusals.map((code) => `\`${code}\``).join(', ')}`] : []),
  ];
  const taken =
    input === undefined ? [] : [`// ${method === 'GET' ? 'query' : 'body'}\n${shapeOf(input, 'input')}`];
  const code = [...taken, `// answer\n${shapeOf(answer, 'output')}`].join('\n');
  return `**\`${method} /api/${name}\`** ${summary}; ${facts.join('; ')}.\n\n\`\`\`ts\n${code}\n\`\`\`\n`;
}

function shapeOf(schema: z.ZodType, io: 'input' | 'output'): string {
  return typeOf(z.toJSONSchema(schema, { io, unrepresentable: 'any' }) as Schema, '');
}

/** Writes a schema as a type of TypeScript. */
function typeOf(schema: Schema, indent: string): string {
  const { type, properties, items, enum: values, additionalProperties: rest } = schema;
  const either = schema.anyOf ?? schema.oneOf;
  if ('const' in schema) return JSON.stringify(schema.const);
  if (values) return values.map((value) => JSON.stringify(value)).join(' | ');
  if (either) return either.map((one) => typeOf(one, indent)).join(' | ');
  if (items) return `${typeOf(items, indent)}[]`;
  if (properties) return objectOf(schema, indent);
  if (type === 'object' && typeof rest === 'object') return `{ [name: string]: ${typeOf(rest, indent)} }`;
  return type === 'integer' ? 'number' : (type ?? 'unknown');
}

function objectOf({ properties = {}, required = [] }: Schema, indent: string): string {
  const inner = `${indent}  `;
  const members = Object.entries(properties).map(([name, one]) => {
    const comment = one.description === undefined ? '' : `${inner}/** ${one.description} */\n`;
    return `${comment}${inner}${name}${required.includes(name) ? '' : '?'}: ${typeOf(one, inner)};`;
  });
  const line = `{ ${members.map((member) => member.trim().replace(/;$/, '')).join('; ')} }`;
  const isShort = line.length + indent.length <= 100 && !line.includes('/**') && !line.includes('\n');
  return isShort ? line : `{\n${members.join('\n')}\n${indent}}`;
}
