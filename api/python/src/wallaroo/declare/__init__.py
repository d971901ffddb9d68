"""Declarations of applications: builder, pipelines, and components that one program offers to others."""
