import type { Config } from '../../config/config.ts';
import { findRedisServer, inspectRedis } from '../../redis/inspect-redis.ts';
import { installCommand, isRecentEnough } from '../../redis/server-process.ts';
import { inspectStore } from '../../store/inspect-store.ts';
import { type DoctorCheck, failed, ok, warning } from './check.ts';

/** The Redis of the configuration, or the program that Parley would start. */
export async function checkRedis({ redisUrl }: Config): Promise<DoctorCheck> {
  const name = 'redis';
  if (redisUrl === undefined) {
    const version = await findRedisServer();
    if (version === undefined)
      return failed(
        name,
        'redis-server is not installed',
        `${installCommand()}, or set REDIS_URL to a Redis of your own`,
      );
    if (!isRecentEnough(version))
      return failed(name, `redis-server ${version} is too old`, 'install 6.2 or newer, or set REDIS_URL');
    return ok(name, `redis-server ${version}, started by Parley`);
  }
  const found = await inspectRedis(redisUrl);
  if (found.kind === 'unreachable')
    return failed(
      name,
      `REDIS_URL is not reachable: ${found.reason}`,
      'start it, correct REDIS_URL, or unset it: Parley then runs one of its own',
    );
  const { version, policy } = found;
  if (!isRecentEnough(version)) return failed(name, `Redis ${version} is too old`, 'install 6.2 or newer');
  if (policy === 'noeviction') return ok(name, `Redis ${version}, noeviction`);
  return warning(
    name,
    `Redis ${version} may drop wake jobs when its memory is full (maxmemory-policy ${policy}); the sweep then finds what waits, later`,
    'redis-cli config set maxmemory-policy noeviction, and in its configuration file',
  );
}

export async function checkStore({ databaseUrl, dataDir }: Config): Promise<DoctorCheck> {
  const name = 'store';
  const report = await inspectStore(
    databaseUrl ? { kind: 'postgres', url: databaseUrl.reveal() } : { kind: 'sqlite', dataDir },
  );
  switch (report.kind) {
    case 'absent':
      return ok(name, 'a new SQLite file will be made by the first start');
    case 'unreachable':
      return databaseUrl
        ? failed(
            name,
            `DATABASE_URL is not reachable: ${report.reason}`,
            'start PostgreSQL, or correct DATABASE_URL',
          )
        : failed(name, `parley.db cannot be opened: ${report.reason}`, 'make it yours to read and write');
    case 'damaged':
      return failed(
        name,
        `parley.db is damaged: ${report.reason}`,
        'stop Parley, keep a copy of the data folder, and restore the last backup',
      );
    case 'found': {
      const { detail, pending, unknown } = report;
      if (unknown.length > 0)
        return failed(
          name,
          `${detail} was used by a newer Parley (${unknown.join(', ')})`,
          'start that version, or restore the backup made before it',
        );
      const next = pending.length === 0 ? '' : `; the next start brings its schema up to date`;
      return ok(name, `${detail}, intact${next}`);
    }
    default:
      return report satisfies never;
  }
}

/** A placeholder for a key is refused with the configuration; none at all is a choice. */
export function checkModel({ model }: Config): DoctorCheck {
  const name = 'model';
  if (model.provider !== 'demo') return ok(name, `${model.id}, ${model.apiKeys.length} key(s); not asked`);
  return warning(
    name,
    'the demo model answers: a script that needs no key',
    'set ANTHROPIC_API_KEY to have a real one',
  );
}
