import { parleyCommand } from '#channel-kit/own-commands.ts';
import { localTime } from '#channel-kit/time-text.ts';
import type { Config } from '../../config/config.ts';
import { namedModels } from '../../config/model-settings.ts';
import { findRedisServer, inspectRedis } from '../../redis/inspect-redis.ts';
import { installCommand, isRecentEnough } from '../../redis/server-process.ts';
import { describeMisfits, misfitAdvice } from '../../store/migrate.ts';
import { inspectStore } from '../../store/open-configured.ts';
import type { StoreReport } from '../../store/store-report.ts';
import { warnOfUnpriced } from '../unpriced-models.ts';
import { type DoctorCheck, failed, ok, warning } from './check.ts';

/** Checks the configured Redis, or the program that Parley would start. */
export async function checkRedis({ redisUrl }: Config): Promise<DoctorCheck> {
  const name = 'redis';
  if (redisUrl === undefined) {
    const version = await findRedisServer();
    if (version === undefined)
      return failed(
        name,
        "redis-server isn't installed",
        `${installCommand()}, or set REDIS_URL to your own Redis`,
      );
    if (!isRecentEnough(version))
      return failed(name, `redis-server ${version} is too old`, 'install 6.2 or newer, or set REDIS_URL');
    return ok(name, `redis-server ${version}, started by Parley`);
  }
  const found = await inspectRedis(redisUrl);
  if (found.kind === 'unreachable')
    return failed(
      name,
      `REDIS_URL isn't reachable: ${found.reason}`,
      'start it, correct REDIS_URL, or unset it to let Parley run its own',
    );
  const { version, policy } = found;
  if (!isRecentEnough(version)) return failed(name, `Redis ${version} is too old`, 'install 6.2 or newer');
  if (policy === 'noeviction') return ok(name, `Redis ${version}, noeviction`);
  return warning(
    name,
    `Redis ${version} may drop wakes when its memory is full (maxmemory-policy ${policy}), so some messages may be answered late`,
    'run: redis-cli config set maxmemory-policy noeviction; then also set it in Redis’s configuration file',
  );
}

/** Checks the database without changing it. */
export async function checkStore(config: Config): Promise<readonly DoctorCheck[]> {
  const { databaseUrl, dataDir } = config;
  const report = await inspectStore(
    databaseUrl ? { kind: 'postgres', url: databaseUrl.reveal() } : { kind: 'sqlite', dataDir },
  );
  return [
    judgeStore(config, report),
    ...(report.kind === 'found' ? checkTools(config, report.withoutTools) : []),
  ];
}

/** Reports, without asking it, any configured model that was found not to support tools. */
function checkTools(config: Config, refusals: ReadonlyMap<string, number>): readonly DoctorCheck[] {
  if (refusals.size === 0) return [];
  const offered = namedModels(config).flatMap(({ provider, id, tools }) =>
    tools === false ? [] : [`${provider}/${id}`],
  );
  return [...new Set(offered)].flatMap((model) => {
    const at = refusals.get(model);
    if (at === undefined) return [];
    const since = localTime(at);
    return [
      warning(
        'tools',
        `its server reported on ${since} that ${model} doesn't support tools, so none are offered`,
        'choose a model that supports tools, or set models.<alias>.tools to false for this one',
      ),
    ];
  });
}

function judgeStore({ databaseUrl }: Config, report: StoreReport): DoctorCheck {
  const name = 'store';
  switch (report.kind) {
    case 'absent':
      return ok(name, 'the first start creates a new SQLite file');
    case 'unreachable':
      return databaseUrl
        ? failed(
            name,
            `DATABASE_URL isn't reachable: ${report.reason}`,
            'start PostgreSQL, or correct DATABASE_URL',
          )
        : failed(
            name,
            `parley.db can't be opened: ${report.reason}`,
            'give Parley’s user read and write access to it',
          );
    case 'damaged':
      return failed(
        name,
        `parley.db is damaged: ${report.reason}`,
        `stop Parley, then restore a backup: ${parleyCommand} restore`,
      );
    case 'found': {
      const { detail, pending, unknown, misfits } = report;
      if (unknown.length > 0)
        return failed(
          name,
          `${detail} was used by another version of Parley (${unknown.join(', ')})`,
          'start that version, or use another data folder or database',
        );
      if (misfits.length > 0)
        return failed(
          name,
          `${detail} has a schema that this version can't work with: ${describeMisfits(misfits)}`,
          misfitAdvice,
        );
      const next = pending.length === 0 ? '' : `; the next start updates its schema`;
      return ok(name, `${detail}, intact${next}`);
    }
    default:
      return report satisfies never;
  }
}

/** Warns of models whose prices are unknown, which budgets can't limit. Empty if there are no budgets. */
export function checkPrices(config: Config): readonly DoctorCheck[] {
  const unpriced = warnOfUnpriced(config);
  return unpriced ? [warning('budgets', unpriced.detail, unpriced.fix)] : [];
}
