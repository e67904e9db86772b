import { Module } from '@nestjs/common';
import { AccessRepository } from './access.repository.js';
import { AccessRoutes } from './access.routes.js';
import { AccessService } from './access.service.js';
import { AgentRoutes } from './agent.routes.js';
import { ApplyRoutes } from './apply.routes.js';
import { ApplyService } from './apply.service.js';
import { AuditRepository } from './audit.repository.js';
import { AuditRoutes } from './audit.routes.js';
import { AuditService } from './audit.service.js';
import { AuthorizationRoutes } from './authorization.routes.js';
import { AuthService } from './auth.service.js';
import { BusHandlers } from './bus.handlers.js';
import { CapabilityRoutes } from './capability.routes.js';
import { DeliveryService } from './delivery.service.js';
import { EdgeTokenRepository } from './edge-token.repository.js';
import { EdgeTokenRoutes } from './edge-token.routes.js';
import { EdgeTokenService } from './edge-token.service.js';
import { HttpKernel } from './http/http-kernel.js';
import { RouteTable } from './http/route-table.js';
import { MissedEvents } from './missed-events.service.js';
import { NotifyRepository } from './notify.repository.js';
import { ImportRoutes } from './import.routes.js';
import { NotifyRoutes } from './notify.routes.js';
import { NotifyService } from './notify.service.js';
import { PublicUrl } from './public-url.js';
import { SignInPages } from './sign-in.pages.js';
import { SignIns } from './sign-in.service.js';
import { PrincipalRoutes } from './principal.routes.js';
import { PrincipalService } from './principal.service.js';
import { RenewalService } from './renewal.service.js';
import { RestoreRepository } from './restore.repository.js';
import { RestoreService } from './restore.service.js';
import { RunEvents } from './run-events.js';
import { ServerRoutes } from './server.routes.js';
import { SessionRoutes } from './session.routes.js';
import { SkillRoutes } from './skill.routes.js';
import { StatusRoutes } from './status.routes.js';
import { WorkerCredentials } from './worker-credentials.js';
import { WorkerRepository } from './worker.repository.js';
import { WorkerRoutes } from './worker.routes.js';
import { WorkerService } from './worker.service.js';
import { WorldService } from './world.service.js';

const routes = [
  AgentRoutes,
  ServerRoutes,
  SkillRoutes,
  ImportRoutes,
  SessionRoutes,
  CapabilityRoutes,
  AuditRoutes,
  AccessRoutes,
  EdgeTokenRoutes,
  PrincipalRoutes,
  WorkerRoutes,
  ApplyRoutes,
  NotifyRoutes,
  StatusRoutes,
  AuthorizationRoutes,
];

@Module({
  controllers: [BusHandlers],
  providers: [
    ...routes,
    RouteTable,
    HttpKernel,
    PublicUrl,
    SignInPages,
    SignIns,
    AuthService,
    AccessRepository,
    AccessService,
    EdgeTokenRepository,
    EdgeTokenService,
    AuditRepository,
    AuditService,
    WorkerRepository,
    WorkerService,
    WorkerCredentials,
    PrincipalService,
    RenewalService,
    RestoreRepository,
    RestoreService,
    RunEvents,
    NotifyRepository,
    NotifyService,
    DeliveryService,
    MissedEvents,
    WorldService,
    ApplyService,
  ],
})
export class AdminApiModule {}
