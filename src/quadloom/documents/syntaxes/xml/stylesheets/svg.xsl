<?xml version="1.0" encoding="UTF-8"?>
<!-- SVG as RDF: title, description, links and the RDF in its metadata. Geometry is a picture, not data. -->
<xsl:stylesheet version="1.0"
    xmlns:xsl="http://www.w3.org/1999/XSL/Transform"
    xmlns:ql="urn:quadloom:xslt"
    xmlns:svg="http://www.w3.org/2000/svg"
    xmlns:xlink="http://www.w3.org/1999/xlink"
    xmlns:rdf="http://www.w3.org/1999/02/22-rdf-syntax-ns#"
    xmlns:dcterms="http://purl.org/dc/terms/"
    exclude-result-prefixes="ql svg xlink">
  <xsl:param name="url"/>

  <xsl:template match="/">
    <rdf:RDF xml:base="{$url}">
      <rdf:Description rdf:about="{$url}">
        <xsl:if test="normalize-space(svg:svg/svg:title)">
          <dcterms:title><xsl:value-of select="normalize-space(svg:svg/svg:title)"/></dcterms:title>
        </xsl:if>
        <xsl:if test="normalize-space(svg:svg/svg:desc)">
          <dcterms:description><xsl:value-of select="normalize-space(svg:svg/svg:desc)"/></dcterms:description>
        </xsl:if>
        <xsl:for-each select="//svg:a">
          <xsl:if test="@xlink:href | @href">
            <dcterms:references rdf:resource="{ql:resolve((@xlink:href | @href)[1], $url)}"/>
          </xsl:if>
        </xsl:for-each>
      </rdf:Description>
      <xsl:copy-of select="//svg:metadata/rdf:RDF/*"/>
    </rdf:RDF>
  </xsl:template>
</xsl:stylesheet>
