import { readdirSync, readFileSync, statSync } from 'node:fs';
import { describe, expect, it } from 'vitest';
import { parse } from 'yaml';
import { z } from 'zod';
import { commandsOf } from '../../src/channel-kit/own-commands.ts';
import { environmentNames } from '../../src/config/environment.ts';

// Checks the defaults of docker-compose.yml against the list of threat 15: every rule is checked on the file as it is
// and on a copy that breaks it.

const service = z.object({
  image: z.string().optional(),
  user: z.string().optional(),
  read_only: z.boolean().optional(),
  privileged: z.boolean().optional(),
  network_mode: z.string().optional(),
  cap_drop: z.array(z.string()).default([]),
  cap_add: z.array(z.string()).default([]),
  security_opt: z.array(z.string()).default([]),
  mem_limit: z.string().optional(),
  pids_limit: z.number().optional(),
  ports: z.array(z.string()).default([]),
  volumes: z.array(z.string()).default([]),
  tmpfs: z.array(z.string()).default([]),
  networks: z.array(z.string()).default([]),
  environment: z.record(z.string(), z.string()).default({}),
  command: z.array(z.string()).default([]),
  depends_on: z.record(z.string(), z.object({ condition: z.string() })).default({}),
  healthcheck: z.object({ test: z.array(z.string()) }).optional(),
});
type Service = z.output<typeof service>;

const compose = z.object({
  services: z.record(z.string(), service),
  networks: z.record(z.string(), z.object({ internal: z.boolean().optional() }).nullable()),
});
type Compose = z.output<typeof compose>;

const original = readFileSync('docker-compose.yml', 'utf8');
const documents = [
  ...['docker-compose.yml', 'README.md', 'channels/signal/README.md'],
  ...readdirSync('docs').flatMap((name) => (name.endsWith('.md') ? [`docs/${name}`] : [])),
].map((path) => readFileSync(path, 'utf8'));
const read = (text: string) => compose.parse(parse(text, { merge: true }));

type ServiceRule = (service: Service, name: string, file: Compose) => boolean;

/** The third-party image whose entrypoint starts as root, and the capabilities it uses (read in its 0.100). */
const beginsAsRoot = 'signal';
const itsRights = ['CHOWN', 'DAC_OVERRIDE', 'KILL', 'SETGID', 'SETUID'];

/** Where an installed package keeps its configuration, for the image's user. */
const home = '/home/node/.local/share/parley';

/** Parley and the server that speaks Signal for it. */
const talksToTheWorld = new Set(['parley', 'signal']);

/** Rules that hold for every service, each with an edit that must break it. */
const rules: Record<string, { readonly holds: ServiceRule; readonly mutate: (text: string) => string }> = {
  'runs as a user that is not root, or drops to one': {
    holds: ({ user, environment }, name) =>
      name === beginsAsRoot
        ? /^[1-9]\d*$/.test(environment.SIGNAL_CLI_UID ?? '') &&
          /^[1-9]\d*$/.test(environment.SIGNAL_CLI_GID ?? '')
        : user !== undefined && /^[1-9]\d*:[1-9]\d*$/.test(user),
    mutate: (text) => text.replace('user: "1000:1000"', 'user: "0:0"'),
  },
  'has a read-only root, unless its entrypoint writes there': {
    holds: (service, name) => name === beginsAsRoot || service.read_only === true,
    mutate: (text) => text.replace('read_only: true', 'read_only: false'),
  },
  'drops every capability and adds none': {
    holds: ({ cap_drop, cap_add }, name) =>
      cap_drop.includes('ALL') && (name === beginsAsRoot || cap_add.length === 0),
    mutate: (text) => text.replace('cap_drop: [ALL]', 'cap_drop: [NET_RAW]'),
  },
  'has what its entrypoint uses as root and nothing else, if it is the Signal server': {
    holds: ({ user, read_only, cap_add }, name) =>
      name !== beginsAsRoot ||
      (user === '0:0' && read_only === false && cap_add.toSorted().join() === itsRights.join()),
    mutate: (text) => text.replace('DAC_OVERRIDE, ', 'DAC_OVERRIDE, SYS_ADMIN, '),
  },
  'cannot gain privileges': {
    holds: (service) =>
      service.security_opt.includes('no-new-privileges:true') && service.privileged !== true,
    mutate: (text) => text.replace('no-new-privileges:true', 'no-new-privileges:false'),
  },
  'has a memory limit': {
    holds: ({ mem_limit }) => mem_limit !== undefined,
    mutate: (text) => text.replace('    mem_limit: 256m\n', ''),
  },
  'has a limit of processes': {
    holds: ({ pids_limit }) => pids_limit !== undefined && pids_limit > 0,
    mutate: (text) => text.replace('    pids_limit: 64\n', ''),
  },
  "mounts nothing of the host but Parley's configuration, which it can't write": {
    holds: ({ volumes }, name) =>
      volumes.every(
        (volume) =>
          /^[a-z][a-z-]*:\//.test(volume) || (name === 'parley' && volume === `./config:${home}:ro`),
      ),
    mutate: (text) =>
      text.replace(
        '"./config:/home/node/.local/share/parley:ro"',
        '"/var/run/docker.sock:/var/run/docker.sock"',
      ),
  },
  'mounts the folder in which Parley finds its configuration, if it is Parley': {
    holds: ({ volumes }, name) => name !== 'parley' || volumes.includes(`./config:${home}:ro`),
    mutate: (text) => text.replace(', "./config:/home/node/.local/share/parley:ro"', ''),
  },
  "publishes ports on the host's loopback only": {
    holds: ({ ports, network_mode }) =>
      network_mode === undefined && ports.every((port) => port.startsWith('127.0.0.1:')),
    mutate: (text) => text.replace('"127.0.0.1:7411:7411"', '"7411:7411"'),
  },
  'publishes no port unless it is Parley': {
    holds: ({ ports }, name) => name === 'parley' || ports.length === 0,
    mutate: (text) =>
      text.replace('    user: "999:1000"', '    ports: ["127.0.0.1:6379:6379"]\n    user: "999:1000"'),
  },
  'sits on the internal network, databases on that alone': {
    holds: ({ networks }, name, file) =>
      networks.includes('inside') &&
      file.networks.inside?.internal === true &&
      (talksToTheWorld.has(name) || networks.length === 1),
    mutate: (text) => text.replace('internal: true', 'internal: false'),
  },
  'has no default password': {
    holds: ({ environment }) =>
      Object.entries(environment)
        .filter(([name, value]) => /PASSWORD$/.test(name) || /:\/\/[^/]*:.*@/.test(value))
        // PostgreSQL's image rejects an empty one; Redis and addresses with a password need theirs in any profile.
        .every(([name, value]) =>
          name === 'POSTGRES_PASSWORD'
            ? value === '$' + '{POSTGRES_PASSWORD:-}'
            : /\$\{[A-Z_]+:\?[^}]+\}/.test(value),
        ),
    mutate: (text) =>
      text.replace(/POSTGRES_PASSWORD: \$\{[^}]*\}/, 'POSTGRES_PASSWORD: $' + '{POSTGRES_PASSWORD:-parley}'),
  },
  'is pinned to an exact version': {
    holds: ({ image }) =>
      image !== undefined && /:\d+\.\d+(?:\.\d+)?(?:-[a-z]+)?(?:@sha256:[0-9a-f]{64})?$/.test(image),
    mutate: (text) => text.replace('redis:7.4.2-bookworm', 'redis:latest'),
  },
  'has a health check': {
    holds: ({ healthcheck }) => healthcheck !== undefined,
    mutate: (text) =>
      text.replace(
        '    healthcheck:\n      test: ["CMD-SHELL", "pg_isready',
        '    x-none:\n      test: ["CMD-SHELL", "pg_isready',
      ),
  },
  'never evicts jobs, and asks for a password, if it is Redis': {
    holds: ({ command }, name) =>
      name !== 'redis' ||
      (/policy noeviction/.test(command.join(' ')) && /--requirepass/.test(command.join(' '))),
    mutate: (text) => text.replace('noeviction', 'allkeys-lru'),
  },
  'hands every message to Parley and starts behind it, if it is the Signal server': {
    holds: ({ environment, depends_on }, name) =>
      name !== 'signal' ||
      (environment.MODE === 'json-rpc' &&
        environment.RECEIVE_WEBHOOK_URL ===
          `http://parley:7411/channels/signal/webhook/${'$'}{SIGNAL_WEBHOOK_SECRET:-}` &&
        depends_on.parley?.condition === 'service_healthy'),
    mutate: (text) => text.replace('http://parley:7411/channels/signal/', 'http://parley:7411/channels/'),
  },
  'is given no variable that Parley does not know, if it is Parley': {
    holds: ({ environment }, name) =>
      name !== 'parley' ||
      Object.keys(environment).every((key) => environmentNames.some((known) => known === key)),
    mutate: (text) => text.replace('PARLEY_OWNERS: $', 'PARLEY_OWNER: $'),
  },
  'is given every variable that Parley reads except the port, if it is Parley': {
    holds: ({ environment }, name) =>
      name !== 'parley' || environmentNames.every((key) => key === 'PARLEY_PORT' || key in environment),
    mutate: (text) => text.replace(/ +PARLEY_GROUP_POLICY: .*\n/, ''),
  },
};

function offenders(text: string, holds: ServiceRule): readonly string[] {
  const file = read(text);
  return Object.entries(file.services)
    .filter(([name, service]) => !holds(service, name, file))
    .map(([name]) => name);
}

describe.each(Object.entries(rules))('in docker-compose.yml every service %s', (_name, { holds, mutate }) => {
  it('keeps the rule in docker-compose.yml', () => {
    expect(offenders(original, holds)).toEqual([]);
  });

  it('catches a Compose file that breaks the rule', () => {
    const mutant = mutate(original);
    expect(mutant).not.toBe(original);
    expect(offenders(mutant, holds)).not.toEqual([]);
  });
});

describe('the rest of the setup', () => {
  it('requires only the Redis password when no profile is on', () => {
    const required = [...original.matchAll(/\$\{([A-Z_]+):\?/g)].map(([, name]) => name);
    expect([...new Set(required)]).toEqual(['REDIS_PASSWORD']);
  });

  it('keeps backups in a volume that Parley may write to', () => {
    expect(read(original).services.parley?.volumes).toContain('parley-backups:/backups');
    expect(readFileSync('Dockerfile', 'utf8')).toMatch(
      /mkdir \/data \/backups && chown node:node \/data \/backups/,
    );
  });

  it('has the four services that exist', () => {
    expect(Object.keys(read(original).services)).toEqual(['parley', 'redis', 'postgres', 'signal']);
  });

  it('allows executable mounts for the Signal server only', () => {
    const mounts = Object.entries(read(original).services).filter(([, { tmpfs }]) =>
      tmpfs.some((mount) => /\bexec\b/.test(mount)),
    );
    expect(mounts.map(([name]) => name)).toEqual(['signal']);
  });

  it('builds the image from an exact version with a user other than root', () => {
    const dockerfile = readFileSync('Dockerfile', 'utf8');
    expect(dockerfile).toMatch(/^FROM node:24\.\d+\.\d+-/m);
    expect(dockerfile.match(/^USER .*$/gm)?.at(-1)).toBe('USER 1000:1000');
    expect(dockerfile).toContain('--ignore-scripts');
  });

  it('provides the command that texts and documents name', () => {
    const { parley, chat } = commandsOf('image');
    expect(parley).toBe('docker compose exec parley parley');
    expect(chat.startsWith(`${parley} `)).toBe(true);
    const dockerfile = readFileSync('Dockerfile', 'utf8');
    expect(dockerfile).toMatch(/^RUN ln -s \/app\/bin\/parley\.mjs \/usr\/local\/bin\/parley$/m);
    expect(readFileSync('bin/parley.mjs', 'utf8')).toMatch(/^#!\/usr\/bin\/env node\n/);
    expect(statSync('bin/parley.mjs').mode & 0o111).toBe(0o111);
    const typed = documents.flatMap(
      (text) => text.match(/docker compose (?:exec|run --rm) parley \S+/g) ?? [],
    );
    expect(typed.length).toBeGreaterThan(5);
    expect(typed.filter((command) => !command.endsWith(' parley parley'))).toEqual([]);
  });

  it('explains how the first person signs in, and signs in again', () => {
    const page = readFileSync('docs/docker.md', 'utf8');
    for (const command of ['pair approve <code>', 'signin'])
      expect(page).toContain(`parley parley ${command}`);
  });

  // https://docs.docker.com/reference/cli/docker/compose/restart/: a restart doesn't apply changed environment
  // variables.
  it('applies changes of .env by recreating the container instead of a restart', () => {
    const lines = documents.flatMap((text) => text.split(/\n|(?<=\.) /));
    const restarts = lines.filter((line) => /compose restart/.test(line) && !/^\| `config\//.test(line));
    expect(restarts.filter((line) => /\.env/.test(line))).toEqual([]);
    expect(lines.filter((line) => /^\| `\.env` \| `docker compose up -d`/.test(line))).toHaveLength(1);
  });

  it('ships an example environment without any values', () => {
    const lines = readFileSync('.env.example', 'utf8').split('\n');
    const set = lines.filter((line) => /^[A-Z_]+=./.test(line));
    expect(set).toEqual([]);
    for (const name of ['REDIS_PASSWORD', 'POSTGRES_PASSWORD', 'PARLEY_GROUP_POLICY', 'PARLEY_CONFIG'])
      expect(lines).toContain(`${name}=`);
  });
});
