import { Injectable } from '@nestjs/common';
import { AccessRoutes } from '../access.routes.js';
import { AgentRoutes } from '../agent.routes.js';
import { ApplyRoutes } from '../apply.routes.js';
import { AuthorizationRoutes } from '../authorization.routes.js';
import { AuditRoutes } from '../audit.routes.js';
import { CapabilityRoutes } from '../capability.routes.js';
import { EdgeTokenRoutes } from '../edge-token.routes.js';
import { ImportRoutes } from '../import.routes.js';
import { NotifyRoutes } from '../notify.routes.js';
import { PrincipalRoutes } from '../principal.routes.js';
import { ServerRoutes } from '../server.routes.js';
import { SessionRoutes } from '../session.routes.js';
import { SkillRoutes } from '../skill.routes.js';
import { StatusRoutes } from '../status.routes.js';
import { WorkerRoutes } from '../worker.routes.js';
import type { BoundRoute } from './bound-route.js';

/** Every bound route of the API. */
@Injectable()
export class RouteTable {
  readonly routes: readonly BoundRoute[];

  constructor(
    agents: AgentRoutes,
    servers: ServerRoutes,
    skills: SkillRoutes,
    sessions: SessionRoutes,
    capabilities: CapabilityRoutes,
    audit: AuditRoutes,
    access: AccessRoutes,
    workers: WorkerRoutes,
    apply: ApplyRoutes,
    status: StatusRoutes,
    principals: PrincipalRoutes,
    notify: NotifyRoutes,
    edge: EdgeTokenRoutes,
    authorizations: AuthorizationRoutes,
    imports: ImportRoutes,
  ) {
    this.routes = [
      agents,
      servers,
      skills,
      sessions,
      capabilities,
      audit,
      access,
      edge,
      workers,
      apply,
      status,
      principals,
      notify,
      authorizations,
      imports,
    ].flatMap(({ routes }) => routes);
  }
}
